package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// outbox holds settlements that wait for a call: the i-th settlement is of the i-th run.
type outbox struct {
	settlements []nixie.Settlement
	runs        []*run
}

func (o *outbox) add(r *run, st *nixie.Settlement) {
	o.settlements = append(o.settlements, *st)
	o.runs = append(o.runs, r)
}

// join adds the content of another outbox.
func (o *outbox) join(other *outbox) {
	o.settlements = append(o.settlements, other.settlements...)
	o.runs = append(o.runs, other.runs...)
}

// empty removes all and keeps the memory, without the pointers in it.
func (o *outbox) empty() {
	clear(o.settlements)
	clear(o.runs)
	o.settlements, o.runs = o.settlements[:0], o.runs[:0]
}

// shard passes settlements from the goroutines of handlers to the settler. The worker has one for
// each processor, so that the goroutines seldom wait for each other.
type shard struct {
	mu   sync.Mutex
	list []decided
	_    [cacheLine]byte // keeps the next shard in another cache line
}

const cacheLine = 64

// decided is a run with its settlement; nil stands for a plain success, which took that long.
type decided struct {
	run  *run
	st   *nixie.Settlement
	took time.Duration
}

// post puts a settlement in and reports whether it is the first one.
func (t *shard) post(r *run, st *nixie.Settlement) (first bool) {
	d := decided{run: r, took: st.Took}
	if !isPlainSuccess(st) {
		kept := *st
		d.st = &kept
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, d)
	return len(t.list) == 1
}

// isPlainSuccess reports whether a settlement has nothing but the verb complete, and a time.
func isPlainSuccess(st *nixie.Settlement) bool {
	return st.Verb == nixie.Complete && st.Failure == nil && st.Second == nil && st.Burial == nil &&
		st.Note == "" && st.Delay == 0 && !st.MayPass && len(st.Then) == 0
}

// take moves all into an outbox.
func (t *shard) take(to *outbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := len(to.settlements)
	to.settlements = slices.Grow(to.settlements, len(t.list))[:at+len(t.list)] // all zero, see empty
	to.runs = slices.Grow(to.runs, len(t.list))
	for i, d := range t.list {
		to.runs = append(to.runs, d.run)
		if st := &to.settlements[at+i]; d.st == nil {
			st.Delivery, st.Verb, st.Took = d.run.d, nixie.Complete, d.took
		} else {
			*st = *d.st
		}
	}
	clear(t.list)
	t.list = t.list[:0]
}
