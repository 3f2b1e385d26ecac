package loop

import (
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// handled tells an observer of notices when their handling is settled: once each.
type handled struct {
	to    *nixie.Observer // complete
	clock func() time.Time

	mu   sync.Mutex
	list map[*nixie.Delivery]underway
}

// underway is a notice that a handler has, or had.
type underway struct {
	nixie.NoticeHandled
	death *death
	died  time.Time
}

func newHandled(to *nixie.Observer, clock func() time.Time) *handled {
	return &handled{to: to.Complete(), clock: clock, list: map[*nixie.Delivery]underway{}}
}

// begin notes that a handler gets a notice.
func (h *handled) begin(d *nixie.Delivery, u underway) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list[d] = u
}

// settled tells of notices that are done with. One that comes again is not, unless its handler has
// replayed the letter before it failed: when it comes again that is history.
func (h *handled) settled(_ string, sts []nixie.Settlement, errs []error) {
	for i := range sts {
		st := &sts[i]
		if code := nixie.CodeOf(errs[i]); code != "" && code != nixie.CodeLeaseLost {
			continue // it is settled again
		}
		h.mu.Lock()
		u, begun := h.list[st.Delivery]
		delete(h.list, st.Delivery)
		h.mu.Unlock()
		if !begun || errs[i] != nil {
			continue
		}
		switch u.Action = nixie.ActionAlert; {
		case u.death.replayed.Load():
			u.Action = nixie.ActionReplay
		case st.Verb == nixie.Discard:
			u.Action = nixie.ActionDiscard
		case st.Verb != nixie.Complete:
			continue
		}
		u.Took, u.Age = st.Took, h.clock().Sub(u.died)
		h.to.Noticed(u.NoticeHandled)
	}
}
