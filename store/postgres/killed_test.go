package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestServerKilled kills the server under processes that enqueue and work. They go
// on by themselves when it is back; what they were told was taken in is there and
// ends, each message once.
func TestServerKilled(t *testing.T) {
	const kills, perKill, workers = 3, 150, 3
	own := testservers.OwnPostgres(t)
	open := func(owner string) *postgres.Store {
		s, err := postgres.Open(t.Context(), own.URL, postgres.Options{Owner: owner})
		must(t, err)
		return s
	}
	s := open("one")
	defer func() { must(t, s.Close()) }()
	var taken, failed, ended atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	known := make([]nixie.ID, 0, kills*perKill)
	var mu sync.Mutex
	until := func(err error) bool { // a store that is away says so
		switch nixie.CodeOf(err) {
		case "", nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeLeaseLost:
			return true
		}
		t.Error(err)
		return false
	}
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			receipts, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
			if err == nil {
				taken.Add(1)
				mu.Lock()
				known = append(known, receipts[0].ID)
				mu.Unlock()
			} else if failed.Add(1); !until(err) {
				return
			}
		}
	})
	for i := range workers {
		w := open(fmt.Sprint("worker-", i))
		all.Go(func() {
			defer func() { must(t, w.Close()) }()
			for !t.Failed() {
				ds, err := w.Claim(t.Context(), "q", nixie.Want{Max: 5, Lease: time.Second})
				if !until(err) {
					return
				}
				var settlements []nixie.Settlement
				for _, d := range ds {
					settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
				}
				for _, err := range w.Settle(t.Context(), settlements) {
					if err == nil {
						ended.Add(1)
					} else if !until(err) {
						return
					}
				}
				select {
				case <-stop:
					if err == nil && len(ds) == 0 {
						infos, err := w.Queues(t.Context())
						if err == nil && len(infos) == 1 && infos[0].Unfinished() == 0 {
							return
						}
					}
				default:
				}
			}
		})
	}
	for range kills {
		for goal := taken.Load() + perKill; taken.Load() < goal && !t.Failed(); {
			_, err := s.Queues(t.Context()) // looks on while they work
			until(err)
		}
		if err := own.Kill(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	if t.Failed() {
		return
	}
	for page := known; len(page) > 0; {
		part := page[:min(500, len(page))]
		page = page[len(part):]
		found, _, err := s.Messages(t.Context(), nixie.Filter{IDs: part, States: []nixie.State{nixie.Succeeded}}, store.Page{Limit: len(part)})
		must(t, err)
		if len(found) != len(part) {
			t.Errorf("of %d messages that were taken in %d succeeded", len(part), len(found))
		}
	}
	if failed.Load() == 0 {
		t.Error("nobody noticed that the server was killed")
	}
	t.Logf("%d messages taken in, %d calls failed, %d ends told", taken.Load(), failed.Load(), ended.Load())
	sound(t, s)
}
