package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// batch claims n new messages by one call. Half of them come in one transaction.
func batch(t *testing.T, s *postgres.Store, n int) []*nixie.Delivery {
	t.Helper()
	for i := range n / 2 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i + 1)})
		must(t, err)
	}
	var rest []nixie.Message
	for i := n / 2; i < n; i++ {
		rest = append(rest, nixie.Message{Queue: "q", Key: fmt.Sprint(i + 1)})
	}
	_, err := s.Enqueue(t.Context(), rest...)
	must(t, err)
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: n, Lease: time.Hour})
	must(t, err)
	if len(ds) != n {
		t.Fatalf("claimed %d", len(ds))
	}
	return ds
}

// complete settles those with these keys, from 1 on, in one call, and returns the keys
// of those that are told to be done.
func complete(t *testing.T, s *postgres.Store, ds []*nixie.Delivery, keys ...int) (done []int) {
	t.Helper()
	list := make([]nixie.Settlement, len(keys))
	for i, key := range keys {
		list[i] = nixie.Settlement{Delivery: ds[key-1], Verb: nixie.Complete}
	}
	for i, err := range s.Settle(t.Context(), list) {
		if err == nil {
			done = append(done, keys[i])
		} else if nixie.CodeOf(err) != nixie.CodeLeaseLost {
			t.Errorf("message %d: %v", keys[i], err)
		}
	}
	return done
}

// ended counts the rows of log and the success ranges, and how many messages the log of jobs
// says to have succeeded.
func ended(t *testing.T, schema string) (log, ranges, jobs int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	must(t, conn.QueryRow(t.Context(), fmt.Sprintf(`select (select count(*) from %[1]s.log), (select count(*) from %[1]s.success_range),
		(select count(*) from %[1]s.nixie_job_log where status = 'successful' and created > now() - interval '1 day')`,
		schema)).Scan(&log, &ranges, &jobs))
	return log, ranges, jobs
}

// Members of a batch that succeed next to each other are one row, and one alone is another.
// Settle answers what was stored, also if some were settled or have rows already.
func TestMembersNextToEachOtherAreOneRange(t *testing.T) {
	list, schema := crowd(t, 1)
	s := list[0]
	ds := batch(t, s, 20)
	for _, step := range []struct {
		what        string
		keys        []int
		want        []int
		log, ranges int
		before      func()
	}{
		{what: "next to each other in any order, and one alone", keys: []int{4, 2, 3, 7}, want: []int{4, 2, 3, 7}, log: 1, ranges: 1},
		{what: "the same once more", keys: []int{4, 2, 3, 7}, log: 1, ranges: 1},
		{what: "some that are done and some that are not", keys: []int{1, 2, 3, 4, 5, 6}, want: []int{1, 5, 6}, log: 4, ranges: 1},
		{what: "behind them", keys: []int{8, 9, 10}, want: []int{8, 9, 10}, log: 4, ranges: 2},
		{what: "around one with a row", keys: []int{11, 12, 13}, want: []int{11, 12, 13}, log: 7, ranges: 2,
			before: func() { giveRow(t, s, ds[11]) }},
		{what: "up to one with a row", keys: []int{15, 16, 18}, want: []int{15, 16, 18}, log: 8, ranges: 3,
			before: func() { giveRow(t, s, ds[16]) }},
		{what: "one with a row alone", keys: []int{14}, want: []int{14}, log: 9, ranges: 3, before: func() { giveRow(t, s, ds[13]) }},
		{what: "one twice", keys: []int{19, 20, 19}, want: []int{19, 20}, log: 11, ranges: 3},
		{what: "one of a range alone", keys: []int{3}, log: 11, ranges: 3},
		{what: "all of them", keys: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, want: []int{17}, log: 12,
			ranges: 3},
	} {
		if step.before != nil {
			step.before()
		}
		if got := complete(t, s, ds, step.keys...); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v are told to be done, want %v", step.what, got, step.want)
		}
		if log, ranges, _ := ended(t, schema); log != step.log || ranges != step.ranges {
			t.Errorf("%s: %d rows of log and %d ranges, want %d and %d", step.what, log, ranges, step.log, step.ranges)
		}
		sound(t, s)
	}
	if _, _, jobs := ended(t, schema); jobs != 20 {
		t.Errorf("the log of jobs has %d", jobs)
	}
	all, _, err := s.Messages(t.Context(), nixie.Filter{States: []nixie.State{nixie.Succeeded}}, store.Page{})
	must(t, err)
	for _, m := range all {
		if m.Attempts != 1 || m.Deliveries != 1 || m.Generation != 1 || m.EndedAt.Before(m.FirstReceivedAt) || m.FirstReceivedAt.IsZero() ||
			m.LeaseOwner != "" {
			t.Errorf("shown as %+v", m.Message)
		}
	}
	if len(all) != 20 {
		t.Errorf("%d have succeeded", len(all))
	}
}

// A lease that is over settles nothing, and the next claim gets what is in no success range.
func TestSuccessRangesOutliveTheirLease(t *testing.T) {
	now := time.Now()
	list, _ := crowdAt(t, 2, func() time.Time { return now })
	ds := batch(t, list[0], 10)
	if got := complete(t, list[0], ds, 3, 4, 5); len(got) != 3 {
		t.Fatalf("%v are done", got)
	}
	now = now.Add(2 * time.Hour)
	if got := complete(t, list[0], ds, 6, 7); got != nil {
		t.Errorf("%v are done after the end of the lease", got)
	}
	var keys []string
	for range 10 {
		ds, err := list[1].Claim(t.Context(), "q", nixie.Want{Max: 10})
		must(t, err)
		for _, d := range ds {
			keys = append(keys, d.Key)
			f := &nixie.Failure{FailedAt: now, Text: "no"}
			must(t, list[1].Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Retry, Delay: time.Hour, Failure: f}})[0])
		}
	}
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"1", "10", "2", "6", "7", "8", "9"}) {
		t.Errorf("%v came again", keys)
	}
	sound(t, list[1])
}

// Messages of success ranges are pruned like others, the oldest first, in steps that end in
// the middle of a range.
func TestPruningRanges(t *testing.T) {
	now := time.Now()
	list, schema := crowdAt(t, 1, func() time.Time { return now })
	s := list[0]
	must(t, store.Configure(t.Context(), s, "q", nixie.QueueSettings{Retention: 10 * time.Minute}, "ann", ""))
	ds := batch(t, s, 30)
	complete(t, s, ds, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	now = now.Add(time.Minute)
	complete(t, s, ds, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	now = now.Add(10 * time.Minute)
	complete(t, s, ds, 21, 22, 23, 24, 25)
	for _, dry := range []bool{true, false} {
		met, cursor := []int64{}, ""
		for step := 0; step == 0 || cursor != "" && step < 10; step++ {
			done, err := s.Prune(t.Context(), store.Pruning{Limit: 7, Cursor: cursor, DryRun: dry})
			must(t, err)
			met, cursor = append(met, done.Messages), done.Next
			sound(t, s)
			if left := len(messages(t, s)); !dry && step == 0 &&
				(left != 23 || slices.ContainsFunc(messages(t, s), func(m store.Record) bool { return m.Key == "11" })) {
				t.Errorf("%d are left after the first step", left)
			}
		}
		if !slices.Equal(met, []int64{7, 7, 6}) {
			t.Errorf("dry run %v: met %v", dry, met)
		}
	}
	if _, ranges, _ := ended(t, schema); ranges != 1 || len(messages(t, s)) != 10 {
		t.Errorf("%d ranges are left, and %d messages", ranges, len(messages(t, s)))
	}
	queues, err := s.Queues(t.Context(), store.QueueQuery{})
	must(t, err)
	if q := queues[0]; q.Pruned != 20 || q.Succeeded != 25 || q.Total != 30 {
		t.Errorf("counted %+v", q)
	}
	complete(t, s, ds, 26, 27, 28, 29, 30)
	sound(t, s)
}

func messages(t *testing.T, s *postgres.Store) []store.Record {
	t.Helper()
	all, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	return all
}

// TestPlansOfSuccesses is TestPlansOfFailures for members of one large batch that
// succeed alone and a few at a time.
func TestPlansOfSuccesses(t *testing.T) {
	reads(t, 8, succeed, whileEmpty)
	reads(t, 8, succeed, atFirst)
	reads(t, 8, succeed, always)
}

func succeed(t *testing.T, s *postgres.Store, _ string, messages int) {
	t.Helper()
	ms := make([]nixie.Message, messages)
	for i := range ms {
		ms[i] = nixie.Message{Queue: fmt.Sprint("s-", messages)}
	}
	_, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
	ds, err := s.Claim(t.Context(), ms[0].Queue, nixie.Want{Max: messages, Lease: time.Hour})
	must(t, err)
	for i := 0; len(ds) > 0; i++ {
		n := min(1+i%4, len(ds))
		list := make([]nixie.Settlement, n)
		for k := range list {
			list[k] = nixie.Settlement{Delivery: ds[k], Verb: nixie.Complete}
		}
		if ds = ds[n:]; n == 4 { // one of them gets a row
			list[2].Verb = nixie.Release
		}
		for _, err := range s.Settle(t.Context(), list) {
			must(t, err)
		}
	}
}
