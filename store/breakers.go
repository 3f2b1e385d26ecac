package store

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Breaker is a circuit breaker of a worker that is not closed.
type Breaker struct {
	Queue  string       `json:"queue"`
	Type   string       `json:"type"`           // of the messages that it holds back
	Reason nixie.Reason `json:"reason"`         // of the failures that opened it
	State  string       `json:"state"`          // open or half-open
	Until  time.Time    `json:"until,omitzero"` // the earliest end of the state open
	Since  time.Time    `json:"since,omitzero"` // when it was closed last
}

// Breakers has the circuit breakers of one process that are not closed. Its zero value is ready,
// and safe for concurrent use. Where two workers of a process have the same breaker, the last to
// change counts.
type Breakers struct {
	mu   sync.Mutex
	list []Breaker
}

// closed is the state of a breaker that holds nothing back, as policy.BreakerState says it.
const closed = "closed"

// maxBreakers bounds the breakers that a process tells of.
const maxBreakers = 100

// Tell takes in a change, and lets keep write all of them as one text, which is empty if all are
// closed. It calls keep once at a time, so that the last text written has all changes.
func (b *Breakers) Tell(c nixie.BreakerChange, keep func(text string) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := c.At.UTC()
	b.list = slices.DeleteFunc(b.list, func(o Breaker) bool {
		same := o.Queue == c.Queue && o.Type == c.Type && o.Reason == c.Reason
		if same {
			since = o.Since
		}
		return same
	})
	if c.State != closed {
		b.list = append(b.list, Breaker{c.Queue, c.Type, c.Reason, c.State, c.Until.UTC(), since})
	}
	if len(b.list) == 0 {
		return keep("")
	}
	told := slices.Clone(b.list)
	slices.SortFunc(told, func(x, y Breaker) int {
		return cmp.Or(cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.Type, y.Type), cmp.Compare(x.Reason, y.Reason))
	})
	data, _ := json.Marshal(told[:min(len(told), maxBreakers)]) // of texts and times: it cannot fail
	return keep(string(data))
}

// BreakersIn reads the text that Tell wrote.
func BreakersIn(text string) (list []Breaker) {
	_ = json.Unmarshal([]byte(text), &list) // one that cannot be read tells of none
	return list
}
