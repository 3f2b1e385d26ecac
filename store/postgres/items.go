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
	r.operations = map[nixie.ID]store.Event{}
	r.read(func(row row) error {
		var id nixie.ID
		var event store.Event
		err := row.Scan((*idColumn)(&id), &event)
		r.operations[id] = event
		return err
	}, "select id, event from @.operation where id = any($1)", uuids(operations))
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
	event, known := r.operations[by.Operation]
	if !known {
		return nil, store.NoOperation(by.Operation)
	}
	it := item{by.Operation, by.Letter}
	return &it, r.items[it].Open(by, event)
}

func (r *resolving) flushItems() {
	for _, it := range r.decided {
		r.run("decide_item.sql", uuids([]nixie.ID{it.letter}), [16]byte(it.operation), string(r.items[it]), plain(r.groups[it]), r.now)
	}
	r.removeLetters()
}

// itemEnd is the ending of a message, of which the item of an operation hears.
type itemEnd struct {
	lifecycle.Ending
	letter int64 // its position
}

// ends notes the outcomes of the items by which operations moved a letter, if they are still to
// come.
func (t *tx) ends(letter int64, endings ...lifecycle.Ending) {
	for _, e := range endings {
		if !e.Operation.IsZero() {
			t.work.ends = append(t.work.ends, itemEnd{e, letter})
		}
	}
}

func (t *tx) flushEnds() {
	ends := t.work.ends
	if len(ends) == 0 {
		return
	}
	t.run("end_items.sql",
		eachOf(ends, func(e itemEnd) [16]byte { return e.Operation }), eachOf(ends, func(e itemEnd) int64 { return e.letter }),
		eachOf(ends, func(e itemEnd) string { return plain(e.Fingerprint) }),
		eachOf(ends, func(e itemEnd) string { same, _ := e.Outcome(); return string(same) }),
		eachOf(ends, func(e itemEnd) string { _, other := e.Outcome(); return string(other) }),
		eachOf(ends, func(e itemEnd) string { return string(e.From()) }), eachOf(ends, func(e itemEnd) bool { return e.Sent }),
		eachOf(ends, func(e itemEnd) bool { return e.Early }), t.now)
}
