package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

// manyStreams counts the streams of the killed workers.
const manyStreams = 1000

// fate decides about the nth message: of a hundred, four fail once and one
// fails for good.
func fate(n int) (failsOnce, dies bool) {
	part := n * 7919 % 100
	return part < 4, part == 4
}

// streams is a worker that notes each start in a ledger and says what was settled.
func (c *childProcess) streams() error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, c.url)
	if err != nil {
		return err
	}
	p, err := policy.New(policy.Config{MaxAttempts: 30, Backoff: policy.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{
		Source: store.NewSource(c.s, "q"), Policy: p, Concurrency: 16, Prefetch: 64, Lease: 2 * time.Second,
		Handler: nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
			n, err := strconv.Atoi(d.Key)
			if err != nil {
				return err
			}
			if _, err := pool.Exec(ctx, "insert into "+c.schema+".ledger (message) values ($1)", n); err != nil {
				return err
			}
			switch once, dies := fate(n); {
			case once && d.LastReason == "":
				return nixie.Transient(errors.New("not yet"))
			case dies:
				return nixie.Permanent(errors.New("never"))
			}
			return nil
		}),
		Observer: &nixie.Observer{Settled: func(_ string, list []nixie.Settlement, errs []error) {
			for i := range list {
				if verb := list[i].Verb; errs[i] == nil && (verb == nixie.Complete || verb == nixie.Bury) {
					c.Say("ended", list[i].Delivery.Key, verb)
				}
			}
		}},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// herd is two workers that are killed again and again.
type herd struct {
	*testing.T
	schema string
	procs  [2]*child.Process
	kills  int
	said   int
	ended  map[string]int
}

func (h *herd) hear(words []string) {
	if len(words) == 0 {
		h.Fatal("a worker ended by itself")
	}
	if words[0] == "ended" {
		h.said++
		h.ended[words[1]]++
	}
}

// replace kills a worker and starts another.
func (h *herd) replace(i int) {
	for _, words := range h.procs[i].Kill() {
		h.hear(words)
	}
	h.kills++
	h.procs[i] = startChild(h.T, "streams", h.schema)
}

// TestShow1_WorkersOfStreamsAreKilled lets two processes work on what one produces
// in a thousand strict streams, and kills them again and again: each message ends
// once, each stream in its order, and the letters of those that died are whole. A
// message in twenty fails.
func TestShow1_WorkersOfStreamsAreKilled(t *testing.T) {
	messages, perKill := proof.Count("kills-postgres-streams"), 900
	if proof.IsDeep() {
		perKill = 5000
	}
	proof.Run(t, "kills-postgres-streams", func(t *testing.T, _ uint64) int {
		list, schema := crowd(t, 1)
		pool, err := pgxpool.New(t.Context(), server.URL)
		must(t, err)
		defer pool.Close()
		_, err = pool.Exec(t.Context(),
			"create table "+schema+".ledger (n bigint generated always as identity primary key, message integer not null)")
		must(t, err)
		defer func() { // the schema is used again
			_, err := pool.Exec(context.Background(), "drop table "+schema+".ledger")
			must(t, err)
		}()
		must(t, store.Configure(t.Context(), list[0], "q", nixie.QueueSettings{Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees}, "ann",
			"events in order"))
		h := &herd{T: t, schema: schema, ended: map[string]int{}}
		h.run(list[0], messages, perKill)
		h.judge(list[0], pool, messages)
		return messages
	})
}

// run produces, and kills a worker after every perKill ends, until all have ended.
func (h *herd) run(s *postgres.Store, messages, perKill int) {
	h.Helper()
	for i := range h.procs {
		h.procs[i] = startChild(h.T, "streams", h.schema)
	}
	var producer sync.WaitGroup
	defer producer.Wait()
	produced := make(chan struct{})
	producer.Go(func() {
		defer close(produced)
		for first := 0; first < messages; first += 100 {
			ms := make([]nixie.Message, 100)
			for i := range ms {
				ms[i] = nixie.Message{Queue: "q", Key: fmt.Sprint(first + i), Stream: fmt.Sprint("s", (first+i)%manyStreams)}
			}
			if _, err := s.Enqueue(h.Context(), ms...); err != nil {
				h.Error(err)
			}
		}
	})
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	waiting := produced
	for next, heard := perKill, false; ; {
		select {
		case words := <-h.procs[0].Lines:
			h.hear(words)
			heard = true
		case words := <-h.procs[1].Lines:
			h.hear(words)
			heard = true
		case <-waiting:
			waiting = nil
		case <-look.C:
			if waiting != nil || heard { // a look does not hear when to kill
				heard = false
				continue
			}
			queues, err := s.Queues(h.Context(), store.QueueQuery{})
			must(h.T, err)
			if queues[0].Unfinished() == 0 {
				for _, p := range h.procs {
					for _, words := range p.Kill() {
						h.hear(words)
					}
				}
				return
			}
		}
		if h.said >= next {
			h.replace(h.kills % 2)
			next += perKill
		}
	}
}

// judge checks what became of all messages.
func (h *herd) judge(s *postgres.Store, pool *pgxpool.Pool, messages int) {
	h.Helper()
	var runs, disorder, unseen int
	must(h.T, pool.QueryRow(h.Context(), strings.ReplaceAll(`select (select count(*) from S.ledger), 
		(select $1 - count(distinct message) from S.ledger),
		(select count(*) from (select message, lag(message) over (partition by message % $2::int order by n) as before from S.ledger) x
			where message < before)`, "S.", h.schema+"."),
		messages, manyStreams).Scan(&runs, &unseen, &disorder))
	twice := 0
	for key, n := range h.ended {
		if n > 1 {
			twice++
			h.Errorf("message %s ended %d times", key, n)
		}
	}
	dying := 0
	for n := range messages {
		if _, dies := fate(n); dies {
			dying++
		}
	}
	q := func() store.QueueInfo {
		queues, err := s.Queues(h.Context(), store.QueueQuery{})
		must(h.T, err)
		return queues[0]
	}()
	letters := 0
	for page := (store.Page{Limit: 1000, Whole: true}); ; {
		list, next, err := s.Letters(h.Context(), nixie.Filter{}, page)
		must(h.T, err)
		for i := range list {
			l := &list[i]
			n, err := strconv.Atoi(l.Message.Key)
			must(h.T, err)
			if _, dies := fate(n); !dies || len(l.History) == 0 || l.History[len(l.History)-1].Text != "never" {
				h.Errorf("letter of message %s: %+v", l.Message.Key, l.History)
			}
		}
		letters += len(list)
		if page.Cursor = next; next == "" {
			break
		}
	}
	h.Logf("%d messages in %d streams, %d kills: %d succeeded, %d dead with %d letters, %d runs, "+
		"%d ended twice, %d out of order, %d never run",
		messages, manyStreams, h.kills, q.Succeeded, q.Dead, letters, runs, twice, disorder, unseen)
	if int(q.Succeeded) != messages-dying || int(q.Dead) != dying || letters != dying || disorder > 0 || unseen > 0 || h.kills == 0 {
		h.Errorf("%d should have died", dying)
	}
	sound(h.T, s)
}
