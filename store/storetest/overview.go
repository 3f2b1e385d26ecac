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

// slowestLook limits the time of an operator's first views. The time is that of the clock or,
// because other tests run at the same time, of the processors of client and server.
const slowestLook = 200 * time.Millisecond

// mostLooks bounds how often a view is asked for until one answer is in time. Where other tests
// keep the processors busy, a few are late; one that scans the letters always is.
const mostLooks = 50

// Overviews fills an empty store with letters and asks for an operator's first views. No answer may
// scan the letters. Servers returns the process numbers of servers whose processor time counts; it
// may be nil.
func Overviews(t *testing.T, st store.Store, letters int, servers func() []string) {
	buryMany(t, st, letters)
	questions := overviews(t, st, int64(letters))
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		best, least := time.Hour, time.Hour
		inTime := func() bool { return best <= slowestLook || least > 0 && least <= slowestLook }
		for look := 0; look < 5 || look < mostLooks && !inTime(); look++ {
			began, used := time.Now(), processorTime(servers)
			if err := questions[name](); err != nil {
				t.Fatal(err)
			}
			best, least = min(best, time.Since(began)), min(least, processorTime(servers)-used)
		}
		t.Logf("%d letters, %-24s %8s, of which processors worked %8s", letters, name+":", best.Round(time.Millisecond/10),
			least.Round(time.Millisecond/10))
		if !inTime() {
			t.Errorf("%s took %s, at most %s is right", name, best, slowestLook)
		}
	}
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
	return map[string]func() error{
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
			store.ByQueue, store.ByHour}}),
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

// buryMany adopts letters of four queues, five groups and three days.
func buryMany(t *testing.T, st store.Store, letters int) {
	t.Helper()
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
