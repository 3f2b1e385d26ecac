package storetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// How an operator's first views are judged. Where other tests keep the processors busy, a time says
// little by itself. So the views of fewer than a million letters are compared with those of a store
// with 1/fewer of them: a view that scans the letters costs fewer times as much.
const (
	slowestLook = 200 * time.Millisecond // among a million letters
	fewer       = 10
	mostGrowth  = 3
	tooQuick    = 3 * time.Millisecond // as little says nothing of growth
	mostLooks   = 50                   // until one is in time; a few are late, one that scans always is
)

// Overviews fills two empty stores with letters, the first with 1/10 of them, and asks for an
// operator's first views. No answer may scan the letters. Servers returns the process numbers of
// servers whose processor time counts; it may be nil.
func Overviews(t *testing.T, few, many store.Store, letters int, servers func() []string) {
	buryMany(t, few, letters/fewer)
	buryMany(t, many, letters)
	ofFew, ofMany := overviews(t, few, int64(letters/fewer)), overviews(t, many, int64(letters))
	for _, name := range slices.Sorted(maps.Keys(ofMany)) {
		best, base, limit := time.Hour, time.Hour, slowestLook
		for look := 0; look < 5 || look < mostLooks && best > limit; look++ {
			base, best = min(base, cost(t, servers, ofFew[name])), min(best, cost(t, servers, ofMany[name]))
			if letters < 1_000_000 {
				limit = max(base, tooQuick) * mostGrowth
			}
		}
		t.Logf("%-24s %8s of %d letters, %8s of %d", name, base.Round(time.Millisecond/10), letters/fewer,
			best.Round(time.Millisecond/10), letters)
		if best > limit {
			t.Errorf("%s took %s, at most %s is right", name, best, limit)
		}
	}
}

// cost returns how long a question took, or how long processors worked meanwhile if that is less.
func cost(t *testing.T, servers func() []string, ask func() error) time.Duration {
	t.Helper()
	began, used := time.Now(), processorTime(servers)
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	took, worked := time.Since(began), processorTime(servers)-used
	if worked <= 0 { // the system does not tell it, or a process ended and took its time along
		return took
	}
	return min(took, worked)
}

// processorTime returns how long the threads of this process and of servers ran, if the system
// tells it.
func processorTime(servers func() []string) (all time.Duration) {
	processes := []string{"self"}
	if servers != nil {
		processes = append(processes, servers()...)
	}
	for _, process := range processes {
		threads, err := filepath.Glob("/proc/" + process + "/task/*/schedstat")
		if err != nil {
			continue
		}
		for _, thread := range threads {
			var ran int64
			if data, err := os.ReadFile(thread); err == nil { // it may have ended
				fmt.Sscan(string(data), &ran) //nolint:errcheck // it counts as none then
			}
			all += time.Duration(ran)
		}
	}
	return all
}

func overviews(t *testing.T, st store.Store, letters int64) map[string]func() error {
	ctx := t.Context()
	waiting := nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview}}
	lately := nixie.Filter{Died: nixie.Times{After: time.Now().Add(-30 * time.Hour)}}
	count := func(f nixie.Filter, c store.Counting) func() error {
		return func() error {
			groups, _, err := st.Count(ctx, f, c)
			if err == nil && len(groups) != len(c.By) {
				err = nixie.Errorf(nixie.CodeInternal, "%d lists of groups by %d properties", len(groups), len(c.By))
			}
			return err
		}
	}
	newest, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func() error{
		"audit of a letter": func() error {
			entries, _, err := st.Audit(ctx, store.AuditFilter{Subjects: []nixie.ID{newest[0].ID}, Oldest: true}, store.Page{})
			if err == nil && len(entries) == 0 {
				err = nixie.Errorf(nixie.CodeInternal, "there are no entries about a letter")
			}
			return err
		},
		"followers in a stream": func() error {
			f := nixie.Filter{Queues: []string{"ordered"}, Streams: []string{"s"}, States: []nixie.State{nixie.Queued, nixie.Leased}}
			for range 5 { // once is too quick to tell
				if list, _, err := st.Messages(ctx, f, store.Page{}); err != nil || len(list) != followers {
					return fmt.Errorf("%d followers, not %d: %w", len(list), followers, err)
				}
			}
			return nil
		},
		"groups": func() error {
			groups, _, err := st.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByFingerprint}, Described: true})
			if err != nil {
				return err
			}
			n := int64(0)
			for _, g := range groups[0] {
				n += g.Count
			}
			if n != letters || len(groups[0][0].Examples) != store.Examples {
				t.Errorf("%d letters in groups, of %d, with %d examples", n, letters, len(groups[0][0].Examples))
			}
			return nil
		},
		"groups by hour": count(nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByHour}, Described: true}),
		"counts of the waiting": count(waiting, store.Counting{By: []store.GroupBy{store.ByRedrivable, store.ByReview, store.ByReason,
			store.ByQueue, store.ByHour, store.ByQueueHour}}),
		"groups of the last day": count(lately, store.Counting{By: []store.GroupBy{store.ByStatus}, Described: true}),
		"what retries":           count(nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByReason}, Retrying: true}),
		"queues": func() error {
			_, err := st.Queues(ctx, store.QueueQuery{})
			return err
		},
		"first page": func() error {
			_, _, err := st.Letters(ctx, waiting, store.Page{})
			return err
		},
	}
}

// followers is the number of messages in a stream, which are older than all letters.
const followers = 3

// buryMany adopts letters of four queues, five groups and three days.
func buryMany(t *testing.T, st store.Store, letters int) {
	t.Helper()
	if err := store.Configure(t.Context(), st, "ordered", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""); err != nil {
		t.Fatal(err)
	}
	for range followers {
		if _, err := st.Enqueue(t.Context(), nixie.Message{Queue: "ordered", Stream: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	now, statuses := time.Now(), []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
	reasons := []nixie.Reason{nixie.ReasonHandler, nixie.ReasonTimeout, nixie.ReasonDependency, nixie.ReasonValidation, nixie.ReasonPoison}
	var call []nixie.Letter
	for i := range letters {
		died := now.Add(-time.Duration(i) * 72 * time.Hour / time.Duration(letters))
		group := i % 5
		call = append(call, nixie.Letter{
			Message: nixie.Message{Queue: fmt.Sprint("q", i%4), Type: "order", Body: []byte("{}"), Attempts: 3, Deliveries: 3,
				Generation: 1, State: nixie.Dead},
			Status: statuses[i%3], Cause: nixie.CauseExhausted, Class: nixie.ClassTransient, Reason: reasons[group], Redrivable: true,
			Signature: fmt.Sprint("no answer from ", group), Fingerprint: fmt.Sprint("v2-", group), DiedAt: died, FirstFailedAt: died,
			LastFailedAt: died,
			History: []nixie.Failure{{FailedAt: died, Attempt: 3, Class: nixie.ClassTransient, Reason: reasons[group], Decision: nixie.Bury,
				Text: "no answer"}},
		})
		if len(call) == 2000 || i == letters-1 {
			_, errs := st.Adopt(t.Context(), call, "ann", "found")
			if at := slices.IndexFunc(errs, func(err error) bool { return err != nil }); at >= 0 {
				t.Fatal(errs[at])
			}
			call = call[:0]
		}
	}
}
