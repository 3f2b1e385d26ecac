package postgres

import "github.com/nixie-go/nixie/store/lifecycle"

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
