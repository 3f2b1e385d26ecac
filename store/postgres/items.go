package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// item is a letter in an operation.
type item struct{ operation, letter nixie.ID }

// readItems locks and reads the items of operations about the letters.
func (r *resolving) readItems(operations []nixie.ID, letters [][16]byte) {
	r.operations = map[nixie.ID]bool{}
	r.read(func(row row) error {
		var id nixie.ID
		err := row.Scan((*idColumn)(&id))
		r.operations[id] = true
		return err
	}, "select id from @.operation where id = any($1)", uuids(operations))
	r.read(func(row row) error {
		var it item
		var state lifecycle.Item
		var planned int64
		err := row.Scan((*idColumn)(&it.operation), (*idColumn)(&it.letter), &state, &planned)
		r.items[it], r.planned[it] = state, planned
		return err
	}, "lock_items.sql", letters, uuids(operations))
}

// item is the item that a resolution is about to decide, nil when it belongs to none.
func (r *resolving) item(by *store.Resolution) (*item, error) {
	if by.Operation.IsZero() {
		return nil, nil
	}
	if !r.operations[by.Operation] {
		return nil, nixie.Errorf(nixie.CodeNotFound, "no operation %s", by.Operation)
	}
	it := item{by.Operation, by.Letter}
	return &it, r.items[it].Open(by.Letter, by.Operation)
}

func (r *resolving) flushItems() {
	for _, it := range r.decided {
		r.run("decide_item.sql", uuids([]nixie.ID{it.letter}), [16]byte(it.operation), string(r.items[it]))
	}
	r.removeLetters()
}
