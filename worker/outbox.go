package worker

import (
	"slices"
	"sync"

	"github.com/nixie-go/nixie"
)

// outbox is what was decided and not settled: the i-th settlement is of the i-th
// run.
type outbox struct {
	settlements []nixie.Settlement
	runs        []*run
}

func (o *outbox) add(r *run, st *nixie.Settlement) {
	o.settlements = append(o.settlements, *st)
	o.runs = append(o.runs, r)
}

// join adds all that is in another.
func (o *outbox) join(other *outbox) {
	o.settlements = append(o.settlements, other.settlements...)
	o.runs = append(o.runs, other.runs...)
}

// empty makes it empty and keeps its memory, without what it pointed to.
func (o *outbox) empty() {
	clear(o.settlements)
	clear(o.runs)
	o.settlements, o.runs = o.settlements[:0], o.runs[:0]
}

// tray is where handlers' goroutines put what they decided, and the settler takes it
// from. There are as many as run at once, so that they seldom wait for each other.
type tray struct {
	mu   sync.Mutex
	list []decided
	_    [cacheLine]byte // apart from the next one
}

const cacheLine = 64

// decided is a run and what becomes of it; nil says that it succeeded, and no more.
type decided struct {
	run *run
	st  *nixie.Settlement
}

// post puts a settlement in and reports whether it is the first one.
func (t *tray) post(r *run, st *nixie.Settlement) (first bool) {
	d := decided{run: r}
	if !plain(st) {
		kept := *st
		d.st = &kept
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, d)
	return len(t.list) == 1
}

// plain reports whether a settlement says of a delivery only that it succeeded.
func plain(st *nixie.Settlement) bool {
	return st.Verb == nixie.Complete && st.Failure == nil && st.Second == nil && st.Burial == nil && st.Note == "" && st.Delay == 0 && !st.MayPass
}

// take moves all into an outbox.
func (t *tray) take(to *outbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := len(to.settlements)
	to.settlements = slices.Grow(to.settlements, len(t.list))[:at+len(t.list)] // all zero, see empty
	to.runs = slices.Grow(to.runs, len(t.list))
	for i, d := range t.list {
		to.runs = append(to.runs, d.run)
		if st := &to.settlements[at+i]; d.st == nil {
			st.Delivery, st.Verb = d.run.d, nixie.Complete
		} else {
			*st = *d.st
		}
	}
	clear(t.list)
	t.list = t.list[:0]
}
