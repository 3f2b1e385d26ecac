package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// side is one of two stores to which the same is done: one adds by the library, the other by SQL.
type side struct {
	*postgres.Store
	schema string
	sql    bool
	conn   *pgx.Conn
	tx     pgx.Tx
}

// kept lists what a store has in its rows, but for IDs, transactions and moments.
var kept = []string{
	`select n, name, settings, paused, strict, age, lease from @.queue order by n`,
	`select queue, number from @.chain order by queue`,
	`select queue, moves, pos, cardinality(late), done, low > 0 from @.cursor order by queue`,
	`select pos, queue, type, key, stream, dedupe, priority, body, hash, headers, origin,
		case when expires > 0 then round((expires - enqueued) / 6e10)::int end, by_range, numbered, ordered_stream,
		substr(id::text, 15, 1) from @.message order by pos`,
	`select p.pos, p.queue, p.state, p.priority, round((p.due - m.enqueued) / 6e10)::int, p.queue_pos, p.attempts, p.deliveries, p.crashes,
		p.alone, p.generation, p.redrives, p.number, p.owner > 0, p.until > 0, p.received > 0, p.redriven, p.claimed > 0, p.abandoned,
		p.steps, p.stream, p.rank, p.may_pass, p.gap, p.reason, p.patience
		from @.pending p join @.message m on m.pos = p.pos order by p.pos`,
	`select queue, key, pos from @.dedupe order by 1, 2`,
	`select n, queue, name, top, blocked, due > 0, mixed, at, has_token from @.stream order by n`,
	`select stream from @.adding`,
	`select queue, streams, positions from @.token order by 1, 2, 3`,
	`select queue, pos, stream from @.ready order by 1, 2`,
	`select n, queue, members, remains, streams, positions from @.batch order by n`,
	`select pos, queue, state from @.log order by pos`,
	`select last_value, is_called from @.position`,
}

// rows returns what is kept.
func (s *side) rows(ctx context.Context) (list []string, err error) {
	for _, query := range kept {
		rows, err := s.conn.Query(ctx, strings.ReplaceAll(query, "@.", s.schema+"."))
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return nil, err
			}
			list = append(list, fmt.Sprintf("%.40s: %v", query, values))
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// enqueue adds a message in the open transaction, between savepoints, and tells of the answer what
// is the same in all stores.
func (s *side) enqueue(ctx context.Context, m nixie.Message) (answer string, err error) {
	part, err := s.tx.Begin(ctx)
	if err != nil {
		return "", err
	}
	to := nixie.Enqueuer(s.Tx(part))
	if s.sql {
		to = bySQL{part, s.schema}
	}
	receipts, refused := to.Enqueue(ctx, m)
	if refused != nil {
		text, _ := told(refused)
		return anyID.ReplaceAllString(text, "ID"), part.Rollback(ctx)
	}
	return fmt.Sprintf("duplicate %t, different %t", receipts[0].Duplicate, receipts[0].Different), part.Commit(ctx)
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// claim claims and settles some of a queue, and tells what came.
func (s *side) claim(ctx context.Context, queue string, most int, verb nixie.Verb) (answer string, err error) {
	ds, err := s.Claim(ctx, queue, nixie.Want{Max: most})
	var list []nixie.Settlement
	for _, d := range ds {
		answer += d.Key + " "
		st := nixie.Settlement{Delivery: d, Verb: verb}
		if verb == nixie.Bury {
			st.Failure = &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Redrivable: true}
		}
		list = append(list, st)
	}
	return answer, errors.Join(append(s.Settle(ctx, list), err)...)
}

// anyMessage returns a random one, which may meet others in its stream and its dedupe key.
func anyMessage(rng *rand.Rand, key int) nixie.Message {
	of := func(list ...string) string { return list[rng.IntN(len(list))] }
	m := nixie.Message{
		Queue: of("plain", "ever", "strict", "strict", "relaxed", "first-claim", "shut", fmt.Sprint("new-", rng.IntN(8))),
		Type:  of("", "t"), Key: fmt.Sprint(key), Stream: of("", "s", "s", "u"), Body: []byte(of("", "one", "two")),
	}
	if rng.IntN(3) == 0 {
		m.DedupeKey = of("k", "l")
		m.OnConflict = nixie.Conflict(rng.IntN(2))
	}
	if rng.IntN(6) == 0 {
		m.Priority = 1 - 2*rng.IntN(2)
	}
	if rng.IntN(6) == 0 {
		m.Delay = time.Hour
	}
	if rng.IntN(6) == 0 {
		m.ExpiresAt = time.Now().Add(time.Hour)
	}
	if rng.IntN(6) == 0 {
		m.Headers = []nixie.Header{{Name: "b", Value: "<1>"}, {Name: "a", Value: ""}}
	}
	return m
}

// TestSQLEnqueueRows does the same to two stores, of which one gets its messages by SQL: both have
// the same rows again and again, and the same messages come in the same order.
func TestSQLEnqueueRows(t *testing.T) {
	proof.Run(t, "sql-enqueue", func(t *testing.T, seed uint64) int {
		const steps, look = 40, 4
		ctx, rng := t.Context(), rand.New(rand.NewPCG(seed, 99))
		var sides []*side
		for range 2 {
			list, schema := crowd(t, 1)
			s := &side{Store: list[0], schema: schema, sql: len(sides) == 1, conn: connected(t, server.URL)}
			for _, q := range []struct {
				name     string
				settings nixie.QueueSettings
			}{
				{"ever", nixie.QueueSettings{DedupeScope: nixie.DedupeEver}}, {"strict", strict()},
				{"relaxed", nixie.QueueSettings{Order: nixie.OrderRelaxed}},
				{"first-claim", nixie.QueueSettings{DedupeScope: nixie.DedupeQueued}},
				{"shut", nixie.QueueSettings{Closed: true, ClosedNote: "we move"}},
			} {
				must(t, store.Configure(ctx, s, q.name, q.settings, "ann", ""))
			}
			sides = append(sides, s)
		}
		both := func(what string, do func(*side) (string, error)) {
			var answers [2]string
			for i, s := range sides {
				answer, err := do(s)
				if err != nil {
					t.Fatalf("%s, by SQL %t: %v", what, s.sql, err)
				}
				answers[i] = answer
			}
			if answers[0] != answers[1] {
				t.Fatalf("%s\nlibrary: %s\nby SQL: %s", what, answers[0], answers[1])
			}
		}
		for step := range steps {
			if rng.IntN(3) > 0 {
				both("begin", func(s *side) (_ string, err error) { s.tx, err = s.conn.Begin(ctx); return "", err })
				for i := range 1 + rng.IntN(4) {
					m := anyMessage(rng, 10*step+i)
					both(fmt.Sprintf("enqueue %+v", m), func(s *side) (string, error) { return s.enqueue(ctx, m) })
				}
				commit := rng.IntN(5) > 0
				both("end", func(s *side) (string, error) {
					if commit {
						return "", s.tx.Commit(ctx)
					}
					return "", s.tx.Rollback(ctx)
				})
			} else {
				queue := []string{"plain", "ever", "strict", "strict", "relaxed", "first-claim"}[rng.IntN(6)]
				most, verb := 1+rng.IntN(4), []nixie.Verb{nixie.Complete, nixie.Complete, nixie.Release, nixie.Bury}[rng.IntN(4)]
				both("claim of "+queue, func(s *side) (string, error) { return s.claim(ctx, queue, most, verb) })
			}
			if (step+1)%look > 0 {
				continue
			}
			var rows [2][]string
			for i, s := range sides {
				var err error
				rows[i], err = s.rows(ctx)
				must(t, err)
			}
			if !slices.Equal(rows[0], rows[1]) {
				for i := range min(len(rows[0]), len(rows[1])) {
					if rows[0][i] != rows[1][i] {
						t.Fatalf("step %d\nlibrary: %s\nby SQL: %s", step, rows[0][i], rows[1][i])
					}
				}
				t.Fatalf("step %d: %d rows, by SQL %d", step, len(rows[0]), len(rows[1]))
			}
		}
		for _, s := range sides {
			sound(t, s.Store)
		}
		return steps
	})
}

// writing has what writers commit by SQL while workers claim.
type writing struct {
	*testing.T
	schema string
	pool   *pgxpool.Pool
	seed   uint64

	mu        sync.Mutex
	committed map[string]int      // by key
	came      map[string][]string // keys by writer, queue and stream
}

// work claims and completes until there is nothing left after the writers have ended.
func (w *writing) work(s *postgres.Store, over <-chan struct{}) error {
	ended := false
	for none := 0; none < 3; none++ {
		for _, queue := range []string{"plain", "strict", "relaxed", "ever"} {
			ds, err := s.Claim(w.Context(), queue, nixie.Want{Max: 20})
			if err != nil {
				return err
			}
			for _, d := range ds {
				none = 0
				writer, _, _ := strings.Cut(d.Key, ".")
				of := writer + " " + queue + " " + d.Stream
				w.mu.Lock()
				w.came[of] = append(w.came[of], d.Key)
				w.mu.Unlock()
				if err := completed(s, d); err != nil {
					return err
				}
			}
		}
		select {
		case <-over:
			ended = true
		default:
		}
		if !ended {
			none = 0
		}
	}
	return nil
}

// write adds in transactions, each of them to one stream, and rolls a quarter of them back.
func (w *writing) write(writer, transactions int) error {
	ctx, rng := w.Context(), rand.New(rand.NewPCG(w.seed, uint64(writer)))
	for n := range transactions {
		tx, err := w.pool.Begin(ctx)
		if err != nil {
			return err
		}
		var keys []string
		stream := fmt.Sprint("s", rng.IntN(3))
		for i := range 1 + rng.IntN(4) {
			m := nixie.Message{Queue: []string{"plain", "strict", "strict", "relaxed", "ever"}[rng.IntN(5)], Stream: stream,
				Key: fmt.Sprintf("%d.%03d.%d", writer, n, i)}
			if m.Queue != "strict" && i > 0 { // so that no two wait for each other
				m.Queue = "plain"
			} else if m.Queue == "ever" {
				m.DedupeKey = fmt.Sprint("k", rng.IntN(6))
			}
			receipts, err := bySQL{tx, w.schema}.Enqueue(ctx, m)
			if err != nil {
				return errors.Join(err, tx.Rollback(ctx))
			}
			if !receipts[0].Duplicate {
				keys = append(keys, m.Key)
			}
		}
		if rng.IntN(4) == 0 {
			if err := tx.Rollback(ctx); err != nil {
				return err
			}
			continue
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		w.commit(keys...)
	}
	return nil
}

func (w *writing) commit(keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.committed[key]++
	}
}

// judge compares what was committed with what came.
func (w *writing) judge() {
	times := map[string]int{}
	for of, keys := range w.came {
		if strings.Contains(of, "strict") && !slices.IsSorted(keys) {
			w.Errorf("of writer, queue and stream %s came %v", of, keys)
		}
		for _, key := range keys {
			times[key]++
		}
	}
	if !maps.Equal(times, w.committed) {
		w.Errorf("came %v\ncommitted were %v", times, w.committed)
	}
}

// TestSQLEnqueueWriters lets eight writers add by SQL, of whose transactions some are rolled back.
// One more stays open all the while, and workers claim. What was committed comes once, in the order
// of its writer in each strict stream, and nothing else comes.
func TestSQLEnqueueWriters(t *testing.T) {
	proof.Run(t, "sql-enqueue-writers", func(t *testing.T, seed uint64) int {
		const writers, transactions = 8, 12
		ctx := t.Context()
		list, schema := crowd(t, 2)
		for name, settings := range map[string]nixie.QueueSettings{
			"plain": {}, "strict": strict(), "relaxed": {Order: nixie.OrderRelaxed}, "ever": {DedupeScope: nixie.DedupeEver},
		} {
			must(t, store.Configure(ctx, list[0], name, settings, "ann", "")) // who makes a queue would hold it
		}
		pool, err := pgxpool.New(ctx, server.URL+"&pool_max_conns=9")
		must(t, err)
		defer pool.Close()
		w := &writing{T: t, schema: schema, pool: pool, seed: seed, committed: map[string]int{}, came: map[string][]string{}}
		long, err := pool.Begin(ctx)
		must(t, err)
		for _, m := range []nixie.Message{{Queue: "plain", Key: "long.1"}, {Queue: "strict", Stream: "long", Key: "long.2"},
			{Queue: "strict", Stream: "long", Key: "long.3"}} {
			_, err := bySQL{long, schema}.Enqueue(ctx, m)
			must(t, err)
		}
		over, errs := make(chan struct{}), make([]error, writers+len(list))
		var workers sync.WaitGroup
		for i, s := range list {
			workers.Go(func() { errs[writers+i] = w.work(s, over) })
		}
		atOnce(writers, func(i int) { errs[i] = w.write(i, transactions) })
		w.mu.Lock()
		early := len(w.came["long plain "]) + len(w.came["long strict long"])
		w.mu.Unlock()
		must(t, long.Commit(ctx))
		w.commit("long.1", "long.2", "long.3")
		close(over)
		workers.Wait()
		must(t, errors.Join(errs...))
		if early > 0 {
			t.Error("what an open transaction added came before its commit")
		}
		w.judge()
		sound(t, list[0])
		return writers * transactions
	})
}
