package runner

import (
	"errors"
	"io"

	"github.com/nixie-go/nixie/internal/items"
)

// MissingField compares the fields of the command with the first item of a checked list. It returns
// the first field that the item does not have, and the fields that it has. It returns "" when the
// item has all, or there is no item. It rewinds the list.
func (r *Runner) MissingField(list *items.Reader) (field string, known []string, err error) {
	item, err := list.Next()
	for err == nil && item.Bad != nil {
		item, err = list.Next()
	}
	if errors.Is(err, io.EOF) {
		return "", nil, list.Rewind()
	}
	if err != nil {
		return "", nil, err
	}
	first := items.OpenStored(item.Body, list.Format() == items.Lines)
	for _, s := range r.steps {
		if s.Flow != nil { // its values may be others
			continue
		}
		for _, path := range s.Paths() {
			if _, ok := first.Field(path); !ok {
				first.Scalars(func(name, _ string) { known = append(known, name) })
				return path, known, list.Rewind()
			}
		}
	}
	return "", nil, list.Rewind()
}
