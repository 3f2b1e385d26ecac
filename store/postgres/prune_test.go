package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
)

// old are messages that ended eight days ago, with a failure of one in ten. They
// lie as the store writes them.
const old = `with gone as (insert into S.message (pos, id, queue, type, priority, body, hash, enqueued, expires, by_range)
		select nextval('S.position'), gen_random_uuid(), q.n, 'old', 0, 'old', sha256('old'), 1, 0, false from S.queue q,
			generate_series(1, $1::int) where q.name = 'loose' returning pos, queue),
	ended as (insert into S.log (pos, queue, state, ended, received, attempts, deliveries, crashes, generation, redrives, number, gap)
		select pos, queue, 2, (extract(epoch from now() - interval '8 days') * 1e9)::bigint, 1, 1, 1, 0, 1, 0, 1, false from gone),
	failed as (insert into S.failure (pos, ordinal, queue, at, failed, class, reason, decision, text, doc)
		select pos, 1, queue, 1, 1, 'transient', 'handler', 'retry', 'no', '{}' from gone where pos % 10 = 0)
	insert into S.counter (queue, state, reason, n) select queue, 2, '', count(*) from gone group by queue`

// TestPruningMany removes many messages that ended long ago, in steps, while others
// work: all of them go and are counted, nothing else does, and the others go on.
func TestPruningMany(t *testing.T) {
	many := proof.Count("prune-postgres")
	proof.Run(t, "prune-postgres", func(t *testing.T, _ uint64) int {
		list, schema := crowd(t, 2)
		a := goRound(t, list[0])
		a.round()
		conn, err := pgx.Connect(t.Context(), server.URL)
		must(t, err)
		defer func() { must(t, conn.Close(t.Context())) }()
		for _, query := range []string{strings.ReplaceAll(old, "S.", schema+"."), "analyze"} {
			args := []any{many}[:strings.Count(query, "$1")]
			_, err = conn.Exec(t.Context(), query, args...)
			must(t, err)
		}
		quiet := time.Now()
		usual := a.pace(func() bool { return time.Since(quiet) > 2*time.Second })

		var steps []time.Duration
		var pruner sync.WaitGroup
		over := make(chan struct{})
		pruner.Go(func() {
			defer close(over)
			for gone := int64(0); ; {
				began := time.Now()
				done, err := list[1].Prune(t.Context(), store.Pruning{Resume: true})
				if err != nil {
					t.Error(err)
					return
				}
				steps = append(steps, time.Since(began))
				if gone += done.Messages; done.Next == "" {
					if gone != int64(many) {
						t.Errorf("%d messages were pruned, want %d", gone, many)
					}
					return
				}
			}
		})
		began := time.Now()
		meanwhile := a.pace(func() bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		})
		pruner.Wait()
		slices.Sort(steps)
		t.Logf("%d messages pruned in %d steps over %s, half of them within %s, the longest %s; others ended %.0f messages a second "+
			"meanwhile and %.0f before",
			many, len(steps), time.Since(began), steps[len(steps)/2], steps[len(steps)-1], meanwhile, usual)
		queues, err := a.st.Queues(t.Context(), store.QueueQuery{})
		must(t, err)
		for i := range queues {
			if q := &queues[i]; q.Pruned != map[string]int64{"loose": int64(many)}[q.Name] || q.Unfinished() != 0 {
				t.Errorf("%s: %d pruned, %d unfinished", q.Name, q.Pruned, q.Unfinished())
			}
		}
		sound(t, a.st)
		return many
	})
}

// pace goes round until it is over and returns how many messages ended in a second.
func (a *around) pace(over func() bool) float64 {
	a.Helper()
	before, began := a.own, time.Now()
	for done := false; !done; done = over() {
		a.round()
	}
	return float64(a.own-before) / time.Since(began).Seconds()
}
