package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/tier"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestShow6_OverviewsReadCounters: what an operator looks at does not go through the letters.
func TestShow6_OverviewsReadCounters(t *testing.T) {
	letters, limit := 50_000, 200*time.Millisecond
	if os.Getenv(tier.DeepVar) != "" {
		letters = 1_000_000
	}
	ctx := t.Context()
	s, err := postgres.Open(ctx, server.URL, postgres.Options{Schema: freshSchema(t), Owner: "owner"}) // which nobody uses after it
	must(t, err)
	defer func() { must(t, s.Close()) }()
	takeIn(t, s, letters)
	waiting := nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview}}
	lately := nixie.Filter{Died: nixie.Times{After: time.Now().Add(-30 * time.Hour)}}
	questions := map[string]func() error{
		"groups": func() error {
			described, _, err := s.Count(ctx, nixie.Filter{}, store.Counting{By: []nixie.GroupBy{nixie.ByFingerprint}, Look: store.LookAtNewest, Described: true})
			must(t, err)
			groups, n := described[0], int64(0)
			for _, g := range groups {
				n += g.Count
			}
			if n != int64(letters) || len(groups[0].Examples) != store.Examples {
				t.Errorf("%d letters in groups, of %d, with %d examples", n, letters, len(groups[0].Examples))
			}
			return nil
		},
		"groups by hour": func() error {
			_, _, err := s.Count(ctx, nixie.Filter{}, store.Counting{By: []nixie.GroupBy{nixie.ByHour}, Look: store.LookAtNewest, Described: true})
			return err
		},
		"counts of the waiting": func() error {
			_, _, err := s.Count(ctx, waiting, store.Counting{By: []nixie.GroupBy{nixie.ByRedrivable, nixie.ByReview, nixie.ByReason, nixie.ByQueue, nixie.ByHour}, Look: store.LookAtNewest})
			return err
		},
		"groups of late": func() error {
			_, _, err := s.Count(ctx, lately, store.Counting{By: []nixie.GroupBy{nixie.ByStatus}, Look: store.LookAtNewest, Described: true})
			return err
		},
		"queues": func() error {
			_, err := s.Queues(ctx, store.QueueLook{})
			return err
		},
		"what retries": func() error {
			_, _, err := s.Count(ctx, nixie.Filter{}, store.Counting{By: []nixie.GroupBy{nixie.ByReason}, Retrying: true})
			return err
		},
		"first page": func() error {
			_, _, err := s.Letters(ctx, waiting, store.Page{})
			return err
		},
	}
	for name, ask := range questions {
		best := time.Hour
		for range 3 {
			began := time.Now()
			must(t, ask())
			best = min(best, time.Since(began))
		}
		t.Logf("%d letters, %s: %s", letters, name, best.Round(time.Millisecond/10))
		if best > limit {
			t.Errorf("%s took %s, at most %s are right", name, best, limit)
		}
	}
}

// takeIn takes letters in of four queues, five groups and three days.
func takeIn(t *testing.T, s *postgres.Store, letters int) {
	t.Helper()
	now, statuses := time.Now(), []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
	reasons := []nixie.Reason{nixie.ReasonHandler, nixie.ReasonTimeout, nixie.ReasonDependency, nixie.ReasonValidation, nixie.ReasonPoison}
	var call []nixie.Letter
	for i := range letters {
		died := now.Add(-time.Duration(i) * 72 * time.Hour / time.Duration(letters))
		group := i % 5
		l := nixie.Letter{
			Message: nixie.Message{Queue: fmt.Sprint("q", i%4), Type: "order", Body: []byte("{}"), Attempts: 3, Deliveries: 3, Generation: 1, State: nixie.Dead},
			Status:  statuses[i%3], Cause: nixie.CauseExhausted, Class: nixie.ClassTransient, Reason: reasons[group], Redrivable: true,
			Signature: fmt.Sprint("no answer from ", group), Fingerprint: fmt.Sprint("v2-", group), DiedAt: died, FirstFailedAt: died, LastFailedAt: died,
			History: []nixie.Failure{{FailedAt: died, Attempt: 3, Class: nixie.ClassTransient, Reason: reasons[group], Decision: nixie.Bury, Text: "no answer"}},
		}
		call = append(call, l)
		if len(call) == 2000 || i == letters-1 {
			_, errs := s.Bury(t.Context(), call, "ann", "found")
			if at := slices.IndexFunc(errs, func(err error) bool { return err != nil }); at >= 0 {
				t.Fatal(errs[at])
			}
			call = call[:0]
		}
	}
}
