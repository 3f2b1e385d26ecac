package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Ended is a generation of a message that ended, as the log of a job queue has it. A message that
// died and was redriven has another one for each generation, until the message is pruned.
type Ended struct {
	Message nixie.ID    `json:"message"`
	Key     string      `json:"key"`
	Queue   string      `json:"queue"`
	State   nixie.State `json:"state"` // succeeded, discarded, canceled or dead
	At      time.Time   `json:"at"`    // PostgreSQL rounds to microseconds
	Type    string      `json:"error_type"`
	Text    string      `json:"error"` // of a death: its last failure
}

// EndedQuery chooses from what ended; an empty field chooses all.
type EndedQuery struct {
	Queues []string
	States []nixie.State // those of [Ended]
	At     nixie.Times
}

// EndStates returns the states of what ended, in the order in which texts name them.
func EndStates() []nixie.State {
	return []nixie.State{nixie.Succeeded, nixie.Discarded, nixie.Canceled, nixie.Dead}
}

// Check refuses states that do not end a generation.
func (q *EndedQuery) Check() error {
	for _, s := range q.States {
		if !slices.Contains(EndStates(), s) {
			return nixie.Errorf(nixie.CodeInvalid, "state %.40q is no end: give succeeded, discarded, canceled or dead", s)
		}
	}
	return nil
}

// Has reports whether the query chooses a generation.
func (q *EndedQuery) Has(e *Ended) bool {
	return (len(q.Queues) == 0 || slices.Contains(q.Queues, e.Queue)) && (len(q.States) == 0 || slices.Contains(q.States, e.State)) &&
		q.At.Holds(e.At)
}

// EndCursor returns the cursor behind a row of what ended; a page is sorted by both numbers, the
// greatest first.
func EndCursor(at, position int64) string { return fmt.Sprintf("%d.%d", at, position) }

// ParseEndCursor reads a cursor of [EndCursor].
func ParseEndCursor(cursor string) (at, position int64, err error) {
	if _, err = fmt.Sscanf(cursor, "%d.%d", &at, &position); err != nil || EndCursor(at, position) != cursor {
		return 0, 0, BadCursor(cursor)
	}
	return at, position, nil
}
