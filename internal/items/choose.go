package items

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// Choice says which items of a list are taken, and in which order: those that Keep keeps,
// sorted, the first of those that agree in a field, without the first Offset, at most Max.
// A reader holds what it has chosen, at most [MaxChosen] bytes.
type Choice struct {
	Keep     func(*Item) bool // nil keeps all
	Sort     []Key            // the first says most; what is equal in all stays as it was
	Distinct string           // path of the field, see [Item.Fields]; empty is none
	Offset   int
	Max      int // 0 is all
}

// MaxChosen is how many bytes of items a choice may hold.
const MaxChosen = 512 << 20

// Key is what a list is sorted by. Null, which a field has that is not there, comes last
// unless NullsFirst, also when it is sorted downwards. Other values are in the order
// booleans, numbers, texts, arrays, objects; arrays and objects by how many they hold. A
// field of a CSV file that reads as a number is one.
type Key struct {
	Path       string
	Down       bool
	NullsFirst bool
}

// ParseSort reads keys such as "priority DESC NULLS FIRST, name".
func ParseSort(text string) (keys []Key, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 {
			return nil, nixie.Errorf(nixie.CodeInvalid, "sort has an empty key: give fields such as 'priority DESC, name'")
		}
		key := Key{Path: strings.TrimPrefix(words[0], "item.")}
		switch rest := strings.ToUpper(strings.Join(words[1:], " ")); rest {
		case "", "ASC", "NULLS LAST", "ASC NULLS LAST":
		case "DESC", "DESC NULLS LAST":
			key.Down = true
		case "NULLS FIRST", "ASC NULLS FIRST":
			key.NullsFirst = true
		case "DESC NULLS FIRST":
			key.Down, key.NullsFirst = true, true
		default:
			return nil, nixie.Errorf(nixie.CodeInvalid, "sort by %s %q: give FIELD [ASC|DESC] [NULLS FIRST|LAST]", words[0], rest)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// candidate is an item with what it is sorted by.
type candidate struct {
	Item
	keys []sortable
}

// choose reads the list from its beginning and holds what the choice takes of it.
func (r *Reader) choose() error {
	c := r.opts.Choice
	var all []candidate
	held := 0
	for {
		item, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if item.Bad == nil && c.Keep != nil && !c.Keep(&item) {
			continue
		}
		if held += len(item.Body); held > MaxChosen {
			return nixie.Errorf(nixie.CodeLimit, "%s: more than %d bytes are chosen, the limit: choose fewer, or sort the list before", r.name, MaxChosen)
		}
		item.Body = bytes.Clone(item.Body)
		all = append(all, candidate{item, r.keysOf(&item)})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return compareKeys(c.Sort, a.keys, b.keys) })
	if c.Distinct != "" {
		all = distinct(all, c.Distinct)
	}
	all = all[min(c.Offset, len(all)):]
	if c.Max > 0 {
		all = all[:min(c.Max, len(all))]
	}
	r.chosen = make([]Item, len(all))
	for i := range all {
		r.chosen[i] = all[i].Item
	}
	return nil
}

// distinct keeps the first of those whose field has the same value.
func distinct(all []candidate, path string) []candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(c candidate) bool {
		value := string(bytes.TrimSpace(c.raw(path)))
		if value == "" {
			value = "null"
		}
		had := seen[value]
		seen[value] = true
		return had
	})
}

// raw is a field as it is written; nil when there is none.
func (i *Item) raw(path string) []byte {
	switch {
	case i.Bad != nil:
		return nil
	case i.plain && path == LineField:
		return i.Body
	case i.plain:
		return nil
	}
	return find(i.Body, path)
}

// sortable is a value that has its place among all others.
type sortable struct {
	rank   int
	number float64 // of a number, or how many are in an array or object
	text   string
}

// The ranks of values.
const (
	rankNull = iota
	rankBool
	rankNumber
	rankText
	rankArray
	rankObject
)

func (r *Reader) keysOf(item *Item) []sortable {
	keys := make([]sortable, len(r.opts.Choice.Sort))
	for i, key := range r.opts.Choice.Sort {
		if item.plain {
			if raw := item.raw(key.Path); raw != nil {
				keys[i] = sortable{rank: rankText, text: string(raw)}
			}
			continue
		}
		keys[i] = sortableOf(item.raw(key.Path), r.format == CSV)
	}
	return keys
}

// sortableOf reads a value; a text may be a number.
func sortableOf(raw []byte, texts bool) sortable {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return sortable{}
	}
	switch v := v.(type) {
	case bool:
		return sortable{rank: rankBool, number: map[bool]float64{true: 1}[v]}
	case float64:
		return sortable{rank: rankNumber, number: v}
	case string:
		if n, err := strconv.ParseFloat(v, 64); texts && err == nil {
			return sortable{rank: rankNumber, number: n}
		}
		return sortable{rank: rankText, text: v}
	case []any:
		return sortable{rank: rankArray, number: float64(len(v))}
	case map[string]any:
		return sortable{rank: rankObject, number: float64(len(v))}
	}
	return sortable{}
}

func compareKeys(by []Key, a, b []sortable) int {
	for i, key := range by {
		if order := key.compare(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

func (k Key) compare(a, b sortable) int {
	if a.rank == rankNull || b.rank == rankNull {
		order := cmp.Compare(b.rank, a.rank) // null last
		if k.NullsFirst {
			return -order
		}
		return order
	}
	order := cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
	if k.Down {
		return -order
	}
	return order
}
