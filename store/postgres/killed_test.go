package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// siege is a store that is used while its server is killed.
type siege struct {
	*testing.T
	stop                 chan struct{} // closed when enough was produced
	last                 chan struct{} // closed when nothing new comes any more
	taken, failed, ended atomic.Int64
	mu                   sync.Mutex
	known                []nixie.ID // what was told to be taken in
	done                 sync.Map   // what was told to be completed
}

// away reports whether an error is that of a store whose server is away.
func (s *siege) away(err error) bool {
	switch nixie.CodeOf(err) {
	case "", nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeLeaseLost:
		return true
	}
	s.Error(err)
	return false
}

// over reports whether a channel is closed, or the test has failed.
func (s *siege) over(when <-chan struct{}) bool {
	select {
	case <-when:
		return true
	default:
		return s.Failed()
	}
}

// produce enqueues one message after the other.
func (s *siege) produce(st *postgres.Store) {
	defer close(s.last)
	for i := 0; !s.over(s.stop); i++ {
		receipts, err := st.Enqueue(s.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
		if err == nil {
			s.taken.Add(1)
			s.mu.Lock()
			s.known = append(s.known, receipts[0].ID)
			s.mu.Unlock()
		} else if s.failed.Add(1); !s.away(err) {
			return
		}
	}
}

// work claims and completes until nothing is left, in two calls or in one. What it was told to be
// completed is on the disk: it does not come again.
func (s *siege) work(st *postgres.Store, exchange bool) {
	defer func() { must(s, st.Close()) }()
	var ds []*nixie.Delivery
	for !s.Failed() {
		settlements := make([]nixie.Settlement, 0, len(ds))
		for _, d := range ds {
			if _, done := s.done.Load(d.ID); done {
				s.Errorf("message %s came again, and was completed", d.Key)
			}
			settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
		}
		var errs []error
		var err error
		if want := (nixie.Want{Max: 5, Lease: time.Second}); exchange {
			errs, ds, err = st.Features().Exchange(s.Context(), settlements, "q", want)
		} else {
			errs = st.Settle(s.Context(), settlements)
			ds, err = st.Claim(s.Context(), "q", want)
		}
		if !s.away(err) {
			return
		}
		for i, err := range errs {
			if err == nil {
				s.ended.Add(1)
				s.done.Store(settlements[i].Delivery.ID, true)
			} else if !s.away(err) {
				return
			}
		}
		if err != nil || len(ds) > 0 || !s.over(s.last) {
			continue
		}
		if infos, err := st.Queues(s.Context(), store.QueueQuery{}); err == nil && len(infos) == 1 && infos[0].Unfinished() == 0 {
			return
		}
	}
}

// TestServerKilled kills the server under processes that enqueue and work. They go
// on by themselves when it is back; what they were told was taken in is there and
// ends, each message once.
func TestServerKilled(t *testing.T) {
	const kills = 3
	proof.Run(t, "kills-postgres-server", func(t *testing.T, _ uint64) int {
		besiege(t, kills)
		return kills
	})
}

// besiege kills one server again and again.
func besiege(t *testing.T, kills int) {
	t.Helper()
	const perKill, workers = 150, 3
	own := testservers.OwnPostgres(t)
	open := func(owner string) *postgres.Store {
		st, err := postgres.Open(t.Context(), own.URL, postgres.Options{Owner: owner})
		must(t, err)
		return st
	}
	st := open("one")
	defer func() { must(t, st.Close()) }()
	s := &siege{T: t, stop: make(chan struct{}), last: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() { s.produce(st) })
	for i := range workers {
		w := open(fmt.Sprint("worker-", i))
		all.Go(func() { s.work(w, i > 0) })
	}
	for range kills {
		for goal := s.taken.Load() + perKill; s.taken.Load() < goal && !t.Failed(); {
			_, err := st.Queues(t.Context(), store.QueueQuery{}) // reads while they work
			s.away(err)
		}
		if err := own.Kill(); err != nil {
			t.Error(err)
		}
	}
	close(s.stop)
	all.Wait()
	if t.Failed() {
		return
	}
	for rest := s.known; len(rest) > 0; {
		part := rest[:min(500, len(rest))]
		rest = rest[len(part):]
		found, _, err := st.Messages(t.Context(), nixie.Filter{IDs: part, States: []nixie.State{nixie.Succeeded}},
			store.Page{Limit: len(part)})
		must(t, err)
		if len(found) != len(part) {
			t.Errorf("of %d messages that were taken in %d succeeded", len(part), len(found))
		}
	}
	if s.failed.Load() == 0 {
		t.Error("no client noticed that the server was killed")
	}
	t.Logf("%d messages taken in, %d calls failed, %d ends told", s.taken.Load(), s.failed.Load(), s.ended.Load())
	sound(t, st)
}
