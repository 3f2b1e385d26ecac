package cli

import (
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/where"
)

// choosingFlags say which items of a list are taken, and in which order.
type choosingFlags struct {
	where, sort, distinct string
	offset, most          int
}

func (c *choosingFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&c.where, "where", "", "only items for which an expression holds, such as 'item.priority > 5'")
	fs.StringVar(&c.sort, "sort-by", "", "order of the items, such as 'priority DESC NULLS FIRST, name' (default as they stand)")
	fs.StringVar(&c.distinct, "distinct", "", "of items with the same value in this field only the first")
	fs.IntVar(&c.offset, "offset", 0, "leave out so many items")
	fs.IntVar(&c.most, "max-items", 0, "take so many items; 0 is all")
}

// choice is what the flags choose; nil is all.
func (c *choosingFlags) choice() (*items.Choice, error) {
	switch {
	case c.offset < 0:
		return nil, usagef("--offset is %d: give a positive number, or leave it out", c.offset)
	case c.most < 0:
		return nil, usagef("--max-items is %d: give a positive number, or 0 for all", c.most)
	case *c == choosingFlags{}:
		return nil, nil //nolint:nilnil // all items are no choice
	}
	choice := &items.Choice{Distinct: c.distinct, Offset: c.offset, Max: c.most}
	var err error
	if choice.Sort, err = items.ParseSort(c.sort); err != nil || c.where == "" {
		return choice, err
	}
	expression, err := where.Parse(c.where)
	if err != nil {
		return nil, err
	}
	choice.Keep = func(item *items.Item) bool { return expression.Matches(itemLetter(item)) }
	return choice, nil
}

// itemLetter is an item as an expression over letters sees it.
func itemLetter(item *items.Item) *nixie.Letter {
	m := nixie.Message{Key: item.Name, Body: item.Body}
	if item.IsLine() {
		m.Type = items.TypeLine
	}
	return &nixie.Letter{Message: m}
}
