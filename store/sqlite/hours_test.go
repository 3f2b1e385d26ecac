package sqlite_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestCountersSayWhatTheLettersSay compares groups and counts, which come from counters
// of facets and hours and read only some letters, with those of a store that reads
// each. The hours differ: in some a facet is most of the letters, in others it is
// hidden between many of another.
func TestCountersSayWhatTheLettersSay(t *testing.T) {
	began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	now := began.Add(48 * time.Hour)
	clock := func() time.Time { return now }
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "nixie.db"), sqlite.Options{Clock: clock})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	ref := memory.New(memory.Options{Clock: clock})
	random := rand.New(rand.NewPCG(1, 2))
	var letters []nixie.Letter
	die := func(g int, at time.Time) { letters = append(letters, deadOf(g, len(letters), at)) }
	for h := range 40 {
		hour := began.Add(time.Duration(h) * time.Hour)
		die(1, hour) // the edges belong to the hour that they begin
		die(random.IntN(6), hour.Add(time.Hour-1))
		if h%3 == 0 { // those of group 2 stand between many others
			for i := range 60 {
				die(4, hour.Add(time.Minute+time.Duration(i)*time.Second))
			}
			die(2, hour.Add(30*time.Minute))
			die(2, hour.Add(30*time.Minute)) // at the same moment
			for i := range 60 {
				die(4, hour.Add(50*time.Minute+time.Duration(i)*time.Second))
			}
			continue
		}
		for range random.IntN(80) {
			die(random.IntN(3), hour.Add(time.Duration(random.Int64N(int64(time.Hour)))))
		}
	}
	random.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
	for _, st := range []store.Store{s, ref} {
		for part := range slices.Chunk(letters, 500) {
			_, errs := st.Adopt(t.Context(), part, "tester", "")
			must(t, errors.Join(errs...))
		}
		var moves []store.Resolution
		for i := range 200 {
			event := [...]store.Event{store.OnRedrive, store.OnDiscard, store.OnHold}[i%3]
			moves = append(moves, store.Resolution{Letter: letters[i].ID, Event: event, Actor: "tester", Reason: "x", Force: true})
		}
		st.Resolve(t.Context(), moves) // both refuse the same ones
	}
	compareGroups(t, s, ref, began)
	report, err := s.Check(t.Context())
	must(t, err)
	if len(report.Violations) > 0 {
		t.Errorf("check found %v", report.Violations)
	}
}

// deadOf is the i-th letter, one of a group.
func deadOf(g, i int, at time.Time) nixie.Letter {
	l := nixie.Letter{
		Message: nixie.Message{Queue: fmt.Sprint("q", g%2), Type: fmt.Sprint("t", g%3), Attempts: 1 + g%4, Deliveries: 5},
		Cause:   nixie.CauseExhausted, Class: nixie.ClassUnknown, Reason: nixie.Reasons()[g%2], Status: nixie.StatusOpen,
		Signature: fmt.Sprint("call ", g), Fingerprint: fmt.Sprint("v1:", g), Redrivable: g%2 == 0, Rule: "default",
		FirstFailedAt: at, LastFailedAt: at, DiedAt: at,
	}
	binary.BigEndian.PutUint64(l.ID[8:], uint64(i)+1)
	l.Message.ID = l.ID
	l.Message.ID[0] = 1
	l.History = []nixie.Failure{{Generation: 1, Attempt: 1, StartedAt: at, FailedAt: at, Class: l.Class, Reason: l.Reason,
		Text: fmt.Sprint("call ", g, " of ", i%10)}}
	return l
}

func compareGroups(t *testing.T, s, ref store.Store, began time.Time) {
	t.Helper()
	at := func(d time.Duration) time.Time { return began.Add(d) }
	two, three := int64(2), int64(3)
	yes := true
	filters := []nixie.Filter{
		{}, {Fingerprints: []string{"v1:2"}}, {Fingerprints: []string{"v1:4", "v1:2"}}, {Queues: []string{"q0"}}, {Redrivable: &yes},
		{Statuses: []nixie.Status{nixie.StatusOpen}}, {Signature: "CALL"},
		{Attempts: nixie.Range{Min: &two, Max: &three}}, {Text: "of 3"}, {Types: []string{"t2"}}, {Types: []string{"t9"}},
	}
	for _, died := range []nixie.Times{
		{After: at(3 * time.Hour)}, {Before: at(5 * time.Hour)}, {After: at(90 * time.Minute), Before: at(30*time.Hour + 1)},
		{After: at(9*time.Hour + 1), Before: at(10 * time.Hour)},
		{After: at(9 * time.Hour), Before: at(10*time.Hour - 1)},
		{After: at(9*time.Hour + time.Minute), Before: at(9*time.Hour + 2*time.Minute)},
		{After: at(9*time.Hour + 30*time.Minute), Before: at(11 * time.Hour)}, {After: at(99 * time.Hour)},
	} {
		for _, f := range filters[:7] {
			f.Died = died
			filters = append(filters, f)
		}
	}
	by := []store.GroupBy{store.ByFingerprint, store.ByHour, store.ByStatus, store.ByAttempts, store.ByQueue}
	for _, f := range filters {
		for _, by := range by {
			got, _, err := s.Count(t.Context(), f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanAll, Described: true})
			must(t, err)
			want, _, err := ref.Count(t.Context(), f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanAll, Described: true})
			must(t, err)
			for i := range want[0] { // which reason a group has is the store's to say
				want[0][i].Reason = ""
			}
			for i := range got[0] {
				got[0][i].Reason = ""
			}
			if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
				t.Errorf("groups by %s of %s:\n%.600s\nwant\n%.600s", by, filter.Text(f), a, b)
			}
		}
		got, _, err := s.Count(t.Context(), f, store.Counting{By: by, Scan: store.ScanAll})
		must(t, err)
		want, _, err := ref.Count(t.Context(), f, store.Counting{By: by, Scan: store.ScanAll})
		must(t, err)
		if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
			t.Errorf("counts of %s: %.600s\nwant %.600s", filter.Text(f), a, b)
		}
	}
}

// TestCountsSayWhatTheyAreAbout asks for more letters than a count scans, all of which match. A
// count of n letters then says that it scanned n, even where many died at one moment.
func TestCountsSayWhatTheyAreAbout(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "nixie.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const all, ofStream = 15_000, 4_000
	for lo := 0; lo < all; lo += 1000 {
		var letters []nixie.Letter
		for i := lo; i < lo+1000; i++ {
			l := deadOf(i%40, i, at.Add(time.Duration(i/3000)*time.Hour))
			if i < ofStream {
				l.Message.Stream = "s"
			}
			letters = append(letters, l)
		}
		_, errs := s.Adopt(t.Context(), letters, "tester", "")
		must(t, errors.Join(errs...))
	}
	one := int64(1)
	any := nixie.Range{Min: &one}
	for _, c := range []struct {
		name   string
		filter nixie.Filter
		of     int64
	}{
		{"all", nixie.Filter{Deliveries: any}, all},
		{"a stream", nixie.Filter{Streams: []string{"s"}}, ofStream},
		{"most of them", nixie.Filter{Types: []string{"t0", "t1"}, Deliveries: any}, 10_125},
		{"a third of them", nixie.Filter{Types: []string{"t0"}, Deliveries: any}, 5_250},
		{"some of several facets", nixie.Filter{Types: []string{"t0"}, Queues: []string{"q0"}, Deliveries: any}, 2_625},
		{"in a time", nixie.Filter{Types: []string{"t0"}, Deliveries: any,
			Died: nixie.Times{After: at.Add(time.Minute), Before: at.Add(210 * time.Minute)}}, 3_150},
	} {
		for _, scan := range []store.Scan{store.ScanRecent, store.ScanAll} {
			described, covered, err := s.Count(t.Context(), c.filter,
				store.Counting{By: []store.GroupBy{store.ByHour}, Scan: scan, Described: true})
			must(t, err)
			groups := described[0]
			n := int64(0)
			for _, g := range groups {
				n += g.Count
			}
			counts, same, err := s.Count(t.Context(), c.filter, store.Counting{By: []store.GroupBy{store.ByHour}, Scan: scan})
			must(t, err)
			for hour, count := range store.Sizes(counts[0]) {
				n -= count
				if i := slices.IndexFunc(groups, func(g store.Group) bool { return g.Key == hour }); i < 0 || groups[i].Count != count {
					t.Errorf("%s: %d letters of hour %s, and groups %v", c.name, count, hour, groups)
				}
			}
			if n != 0 || same != covered {
				t.Errorf("%s: groups say that they scanned %v, counts %v, and differ by %d letters", c.name, covered, same, n)
			}
			for _, g := range counts[0] {
				n += g.Count
			}
			want := store.Coverage{Newest: n, Of: c.of}
			if scan == store.ScanAll {
				want = store.Coverage{}
			}
			if covered != want || scan == store.ScanAll && n != c.of || scan == store.ScanRecent && n >= c.of {
				t.Errorf("%s: %d letters were counted, and it says that it scanned %+v of %d", c.name, n, covered, c.of)
			}
		}
	}
}

// TestCountsOfManyFacets counts letters whose facets are about as many, or several times less, with
// those of a store that reads each letter.
func TestCountsOfManyFacets(t *testing.T) {
	const facets = 60
	began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return began.Add(6 * time.Hour) }
	for _, each := range []int{1, 2, 8} {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "nixie.db"), sqlite.Options{Clock: clock})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		ref := memory.New(memory.Options{Clock: clock})
		random := rand.New(rand.NewPCG(3, uint64(each)))
		var letters []nixie.Letter
		for i := range facets * each {
			at := began.Add(time.Duration(random.IntN(5*60)) * time.Minute)
			letters = append(letters, deadOf(random.IntN(facets), i, at))
		}
		for _, st := range []store.Store{s, ref} {
			_, errs := st.Adopt(t.Context(), letters, "tester", "")
			must(t, errors.Join(errs...))
		}
		by := []store.GroupBy{store.ByFingerprint, store.ByLabel, store.ByQueue, store.ByHour, store.ByQueueHour, store.ByReason}
		for i := range 40 {
			var f nixie.Filter
			if i%2 == 1 {
				f.Statuses = []nixie.Status{nixie.StatusOpen, nixie.StatusReview}
			}
			if i%4 > 1 {
				f.Died.After = letters[random.IntN(len(letters))].DiedAt
			}
			if i%8 > 3 {
				f.Died.Before = letters[random.IntN(len(letters))].DiedAt
			}
			got, _, err := s.Count(t.Context(), f, store.Counting{By: by})
			must(t, err)
			want, _, err := ref.Count(t.Context(), f, store.Counting{By: by})
			must(t, err)
			for j := range by {
				if !reflect.DeepEqual(got[j], want[j]) {
					t.Fatalf("%d of each facet, %s by %s: %v, want %v", each, filter.Text(f), by[j], got[j], want[j])
				}
			}
		}
	}
}
