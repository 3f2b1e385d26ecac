package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// logged says what rows of log are counted by.
type logged struct {
	queue  int64
	state  int
	reason string
}

// count notes that a row of log comes or goes.
func (t *tx) count(m *message, n int64) {
	if t.work.counts == nil {
		t.work.counts = map[logged]int64{}
	}
	of := logged{m.queue, m.State, ""}
	if n < 0 {
		of.state = m.logged
	}
	if of.state == lifecycle.Discarded {
		of.reason = cmp.Or(m.reason, "unknown")
	}
	t.work.counts[of] += n
}

// flushCounts adds what a transaction changed.
func (t *tx) flushCounts() {
	list := make([]logged, 0, len(t.work.counts))
	for of, n := range t.work.counts {
		if n != 0 {
			list = append(list, of)
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b logged) int { return cmp.Compare(a.queue, b.queue) })
	t.run("add_counts.sql",
		eachOf(list, func(of logged) int64 { return of.queue }), eachOf(list, func(of logged) int64 { return int64(of.state) }),
		eachOf(list, func(of logged) string { return of.reason }), eachOf(list, func(of logged) int64 { return t.work.counts[of] }))
}

// folds are statements that make few rows of the many by which transactions counted. They skip rows
// that another process folds.
var folds = [...]string{"fold_counters.sql", "fold_deaths.sql"}

// foldAtOnce is the number of rows that fold_deaths.sql folds, and of letters that a process takes
// in or resolves before it folds, too: it may be one that never claims and so has no heartbeat.
const foldAtOnce = 20_000

// fold folds what there is. What fails is left for the next time.
func (s *Store) fold(ctx context.Context) {
	_, _ = s.pool.Exec(ctx, s.named(folds[0])) // likewise
	for n := int64(foldAtOnce); n >= foldAtOnce; {
		if s.pool.QueryRow(ctx, s.named(folds[1])).Scan(&n) != nil {
			return
		}
	}
}

// changed notes that a call took in or resolved letters, and folds when there were many.
func (s *Store) changed(ctx context.Context, letters int) {
	if s.letters.Add(int64(letters)) >= foldAtOnce {
		s.letters.Store(0)
		s.fold(ctx)
	}
}

// countDeaths counts new letters; triggers count letters that change or go.
func (t *tx) countDeaths(fresh []*letterRow) {
	sums := map[letterKind]int64{}
	for _, l := range fresh {
		sums[l.counted()]++
	}
	list := slices.Collect(maps.Keys(sums))
	if len(list) == 0 {
		return
	}
	t.run("count_letters.sql",
		eachOf(list, func(k letterKind) int64 { return k.queue }), eachOf(list, func(k letterKind) string { return k.mtype }),
		eachOf(list, func(k letterKind) string { return string(k.Status) }),
		eachOf(list, func(k letterKind) string { return string(k.Cause) }),
		eachOf(list, func(k letterKind) string { return string(k.Class) }),
		eachOf(list, func(k letterKind) string { return string(k.Reason) }),
		eachOf(list, func(k letterKind) string { return k.Signature }), eachOf(list, func(k letterKind) string { return low(k.Signature) }),
		eachOf(list, func(k letterKind) string { return k.Fingerprint }),
		eachOf(list, func(k letterKind) bool { return k.Redrivable }), eachOf(list, func(k letterKind) bool { return k.NeedsReview }),
		eachOf(list, func(k letterKind) int { return k.redrives }), eachOf(list, func(k letterKind) int { return k.attempts }),
		eachOf(list, func(k letterKind) int { return k.crashes }),
		eachOf(list, func(k letterKind) int64 { return k.Died }), eachOf(list, func(k letterKind) int64 { return sums[k] }))
}

// counted returns what a letter is counted by, with the hour in which it died.
func (l *letterRow) counted() letterKind {
	return letterKind{queue: l.queue, mtype: l.mtype, redrives: l.redrives, attempts: l.attempts, crashes: l.crashes,
		Letter: lifecycle.Letter{
			Status: l.Status, Cause: nixie.Cause(plain(string(l.Cause))), Class: nixie.Class(plain(string(l.Class))),
			Reason:    nixie.Reason(plain(string(l.Reason))),
			Signature: plain(l.Signature), Fingerprint: plain(l.Fingerprint), Redrivable: l.Redrivable, NeedsReview: l.NeedsReview,
			Died: lifecycle.Hour(l.Died),
		}}
}
