package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// series makes the numbers 1 to n.
const series = "with recursive s(i) as (select 1 union all select i + 1 from s where i < %d) "

// crowd puts n scheduled, n retrying and n ended messages into queues big, again
// and done, by the statements of the schema: what makes them is not measured.
func crowd(t testing.TB, s *sqlite.Store, n int) {
	t.Helper()
	ctx := context.Background()
	var errs []error
	for _, queue := range []string{"big", "again", "done"} {
		_, err := s.Enqueue(ctx, nixie.Message{Queue: queue, Body: []byte("first")})
		errs = append(errs, err)
	}
	message := `insert into message (pos, id, own, priority, body, hash, enqueued, expires)
		select (%d << 40) + 1 + i, randomblob(16), 1, 0, x'00', zeroblob(32), i, 0 from s`
	now := time.Now().UnixNano()
	errs = append(errs, s.Run(ctx,
		fmt.Sprintf(series+message, n, 1), fmt.Sprintf(series+message, n, 2), fmt.Sprintf(series+message, n, 3),
		fmt.Sprintf(series+`insert into pending (pos, queue, state, priority, due, attempts, deliveries, crashes,
			generation, redrives, number, owner, until, received, rank, may_pass, gap)
			select (1 << 40) + 1 + i, 1, 0, 0, %d + i * 1000000000, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 from s`,
			n, now+int64(time.Hour)),
		fmt.Sprintf(series+`insert into failure (pos, ordinal, queue, at, decision, reason, text, doc)
			select (2 << 40) + 1 + i, 1, 2, %d, 'retry',
				case i %% 3 when 0 then 'timeout' when 1 then 'handler' else 'dependency' end, 'x', '{}' from s`,
			n, now-int64(2*time.Hour)),
		fmt.Sprintf(series+`insert into pending (pos, queue, state, priority, due, attempts, deliveries, crashes,
			generation, redrives, number, owner, until, received, rank, may_pass, gap, reason)
			select (2 << 40) + 1 + i, 2, 0, 0, %d + i * 1000000, i %% 5 + 1 + (i %% %d = 0) * 10, 11, 0, 1, 0, 11, 0, 0, 1, 0, 0, 0,
				case i %% 3 when 0 then 'timeout' when 1 then 'handler' else 'dependency' end from s`, n, now+int64(time.Hour), n/10),
		"insert into counter select 0, queue, state, due >> 36, '', count(*) from pending where pos & 0xffffffffff > 1 group by 2, 3, 4",
		"insert into counter select 1, queue, attempts, 0, reason, count(*) from pending where attempts > 0 group by 2, 3, 5",
		fmt.Sprintf(series+"insert into log (pos, state, ended, received) select (3 << 40) + 1 + i, 2, i, i from s", n),
		fmt.Sprintf("update queue set last = last + %d", n), fmt.Sprintf("update queue set succeeded = %d where n = 3", n)))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// questions lists the questions that operators ask of a whole store.
func questions(s store.Store) map[string]func(context.Context) (int64, error) {
	ten := int64(10)
	onWay := []nixie.State{nixie.Queued, nixie.Leased}
	tally := func(by store.GroupBy) func(context.Context) (int64, error) {
		return func(ctx context.Context) (n int64, err error) {
			list, _, err := s.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{by}, Retrying: true})
			if err != nil {
				return 0, err
			}
			for _, g := range list[0] {
				n += g.Count
			}
			return n, nil
		}
	}
	found := func(f nixie.Filter) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) {
			list, _, err := s.Messages(ctx, f, store.Page{Limit: 1000})
			return int64(len(list)), err
		}
	}
	return map[string]func(context.Context) (int64, error){
		"queues": func(ctx context.Context) (n int64, err error) {
			list, err := s.Queues(ctx, store.QueueQuery{})
			for _, q := range list {
				n += q.Scheduled
			}
			return n, err
		},
		"tally by attempts": tally(store.ByAttempts),
		"tally by reason":   tally(store.ByReason),
		"attempts of 10":    found(nixie.Filter{States: onWay, Attempts: nixie.Range{Min: &ten}}),
		"leased":            found(nixie.Filter{States: []nixie.State{nixie.Leased}}),
	}
}

func TestShow6_OverviewsReadCounters(t *testing.T) {
	options := sqlite.Options{Reserve: -1}
	storetest.Overviews(t, open(t, "", options), open(t, "", options), proof.Letters(), nil)
}

// TestOverviewsDoNotCountOneByOne asks among n messages, where reading
// each would be seen. BenchmarkOverview asks among a million of each kind.
func TestOverviewsDoNotCountOneByOne(t *testing.T) {
	n, limit := 100_000, 100*time.Millisecond
	if testing.Short() {
		n = 10_000
	}
	for name, took := range askAll(t, n) {
		t.Logf("%-18s %8.2f ms among %d messages", name, float64(took.Microseconds())/1000, 3*n)
		if took > limit {
			t.Errorf("%s took %s, the limit is %s", name, took, limit)
		}
	}
}

// BenchmarkOverview prints how long each question takes among 1,000,000
// scheduled, 1,000,000 retrying and 1,000,000 ended messages.
func BenchmarkOverview(b *testing.B) {
	for name, took := range askAll(b, 1_000_000) {
		b.ReportMetric(float64(took.Microseconds())/1000, strings.ReplaceAll(name, " ", "_")+"_ms")
	}
}

// askAll returns the best of three times of each question.
func askAll(t testing.TB, n int) map[string]time.Duration {
	s := open(t, "", sqlite.Options{Reserve: -1})
	crowd(t, s, n)
	if _, err := s.Claim(t.Context(), "done", nixie.Want{Max: 1}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"queues": 2 * int64(n), "tally by attempts": int64(n), "tally by reason": int64(n), "attempts of 10": 10,
		"leased": 1}
	times := map[string]time.Duration{}
	for name, ask := range questions(s) {
		best := time.Hour
		for range 4 { // the first one reads the disk
			began := time.Now()
			got, err := ask(t.Context())
			if err != nil || got != want[name] {
				t.Fatalf("%s: %d, %v; want %d", name, got, err, want[name])
			}
			best = min(best, time.Since(began))
		}
		times[name] = best
	}
	return times
}
