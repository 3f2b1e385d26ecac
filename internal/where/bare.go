package where

import (
	"maps"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// OfItem translates an expression of another language, in which a bare name is a field of the item,
// also if it is a fact of a letter here: it writes item. before each. Errors are of
// [nixie.CodeInvalid].
func OfItem(text string) (string, error) {
	p := parser{bare: true}
	if err := p.readBare(text); err != nil {
		return "", err
	}
	var b strings.Builder
	end := 0
	for _, at := range p.names {
		b.WriteString(text[end:at] + "item.")
		end = at
	}
	b.WriteString(text[end:])
	_, err := Parse(b.String())
	return b.String(), err
}

func (p *parser) readBare(text string) error {
	if len(text) > maxText {
		return nixie.Errorf(nixie.CodeInvalid, "the expression has %d bytes: give at most %d", len(text), maxText)
	}
	p.text, p.e = text, &Expr{missing: map[string][]string{}}
	root, err := p.parse()
	if err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "the expression %q cannot be read: %w", text, err)
	}
	p.e.root = root
	return nil
}

// Condition is an expression over values with names. It is safe for concurrent use.
type Condition struct {
	text string
	root node
	need map[string][]string
}

// ParseCondition reads a condition, in which each name is a value. Errors are of
// [nixie.CodeInvalid].
func ParseCondition(text string) (*Condition, error) {
	p := parser{bare: true, whole: true}
	if err := p.readBare(text); err != nil {
		return nil, err
	}
	return &Condition{text, p.e.root, p.e.missing}, nil
}

// String returns the text of the condition.
func (c *Condition) String() string { return c.text }

// True reports whether it holds for values, an object as JSON has it.
func (c *Condition) True(values any) bool {
	return c.root.value(&env{letter: &nixie.Letter{}, item: values}) == true
}

// Missing lists the names of the condition that the values do not have, except for those of is_null
// and is_not_null.
func (c *Condition) Missing(values any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.need)) {
		if !hasPath(values, c.need[name]) {
			names = append(names, strings.TrimPrefix(name, "item."))
		}
	}
	return names
}

// Roots lists the first names of the values that a condition needs.
func (c *Condition) Roots() (names []string) {
	for _, path := range c.need {
		if !slices.Contains(names, path[0]) {
			names = append(names, path[0])
		}
	}
	slices.Sort(names)
	return names
}
