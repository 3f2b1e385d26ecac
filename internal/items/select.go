package items

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Selection filters and orders the items of a list, in this order of steps: Keep, Sort, Distinct,
// Offset, Max. The reader holds the selected items, at most [MaxSelected] bytes.
type Selection struct {
	Keep     func(*Item) bool // nil keeps all items
	Sort     []SortKey        // the first key comes first; equal items keep their order
	Distinct string           // keeps the first item of each value of this field, see [Item.Field]; empty keeps all
	Offset   int              // skips that many items
	Max      int              // limits the items; 0 means no limit
}

// MaxSelected limits the bytes of the items that a selection holds.
const MaxSelected = 512 << 20

// SortKey sorts a list by a field. Null and a missing field come last unless NullsFirst, also in
// descending order. Other values have the order booleans, numbers, texts, arrays, objects; arrays
// and objects are sorted by their length. A number in a CSV file is a number.
type SortKey struct {
	Path       string
	Descending bool
	NullsFirst bool
}

// ParseSort reads keys such as "priority DESC NULLS FIRST, name".
func ParseSort(text string) (keys []SortKey, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 {
			return nil, nixie.Errorf(nixie.CodeInvalid, "sort has an empty key: give fields such as 'priority DESC, name'")
		}
		key := SortKey{Path: strings.TrimPrefix(words[0], "item.")}
		switch rest := strings.ToUpper(strings.Join(words[1:], " ")); rest {
		case "", "ASC", "NULLS LAST", "ASC NULLS LAST":
		case "DESC", "DESC NULLS LAST":
			key.Descending = true
		case "NULLS FIRST", "ASC NULLS FIRST":
			key.NullsFirst = true
		case "DESC NULLS FIRST":
			key.Descending, key.NullsFirst = true, true
		default:
			return nil, nixie.Errorf(nixie.CodeInvalid, "sort by %s %q: give FIELD [ASC|DESC] [NULLS FIRST|LAST]", words[0], rest)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// candidate is an item with its sort values.
type candidate struct {
	Item
	keys []sortValue
}

// selectItems reads the list from its beginning and holds the selected items.
func (r *Reader) selectItems() error {
	c := r.opts.Select
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
		if held += len(item.Body); held > MaxSelected {
			return nixie.Errorf(nixie.CodeLimit, "%s: more than %d bytes are selected, the limit: select fewer, or sort the list before",
				r.name, MaxSelected)
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
	r.selected = make([]Item, len(all))
	for i := range all {
		r.selected[i] = all[i].Item
	}
	return nil
}

// distinct keeps the first item of each value of a field.
func distinct(all []candidate, path string) []candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(c candidate) bool {
		value := "null"
		if raw := c.raw(path); len(raw) > 0 && c.plain {
			value = string(raw)
		} else if len(raw) > 0 {
			value = canonical(raw)
		}
		had := seen[value]
		seen[value] = true
		return had
	})
}

// raw returns a field as it is written, or nil.
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

// sortValue is a value of the total order of values.
type sortValue struct {
	rank   int
	number Number
	length int // of an array or object; 1 is true
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

func (r *Reader) keysOf(item *Item) []sortValue {
	keys := make([]sortValue, len(r.opts.Select.Sort))
	for i, key := range r.opts.Select.Sort {
		if item.plain {
			if raw := item.raw(key.Path); raw != nil {
				keys[i] = sortValue{rank: rankText, text: string(raw)}
			}
			continue
		}
		keys[i] = sortValueOf(item.raw(key.Path), r.format == CSV)
	}
	return keys
}

// sortValueOf reads a value; with texts, a text may be a number.
func sortValueOf(raw []byte, texts bool) sortValue {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return sortValue{}
	}
	switch raw[0] {
	case 'n':
		return sortValue{}
	case 't', 'f':
		return sortValue{rank: rankBool, length: len("false") - len(raw)}
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // it was scanned before
		return sortValue{rank: rankArray, length: len(list)}
	case '{':
		var object map[string]json.RawMessage
		_ = json.Unmarshal(raw, &object)
		return sortValue{rank: rankObject, length: len(object)}
	case '"':
		text := unquote(raw)
		if n, ok := readNumber(text, true); texts && ok {
			return sortValue{rank: rankNumber, number: n}
		}
		return sortValue{rank: rankText, text: text}
	}
	n, ok := ParseNumber(string(raw))
	if !ok {
		return sortValue{rank: rankText, text: string(raw)}
	}
	return sortValue{rank: rankNumber, number: n}
}

func compareKeys(by []SortKey, a, b []sortValue) int {
	for i, key := range by {
		if order := key.compare(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

func (k SortKey) compare(a, b sortValue) int {
	if a.rank == rankNull || b.rank == rankNull {
		order := cmp.Compare(b.rank, a.rank) // null last
		if k.NullsFirst {
			return -order
		}
		return order
	}
	order := cmp.Or(cmp.Compare(a.rank, b.rank), a.number.Compare(b.number),
		cmp.Compare(a.length, b.length), strings.Compare(a.text, b.text))
	if k.Descending {
		return -order
	}
	return order
}
