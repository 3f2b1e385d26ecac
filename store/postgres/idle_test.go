package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

// TestIdleCostsNothing lets workers of ten queues wait for three seconds: all of them
// together ask twice a second at most, and use no transaction ID. What then comes is picked
// up.
func TestIdleCostsNothing(t *testing.T) {
	const queues, seconds, never = 10, 3, 1 << 30
	line, schema := newWire(t), lend(t)
	s := open(t, line.url, postgres.Options{Schema: schema})
	ctx, stop := context.WithCancel(t.Context())
	came := make(chan string, queues)
	var all sync.WaitGroup
	for i := range queues {
		name := fmt.Sprint("q", i)
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: name})
		must(t, err)
		w, err := worker.New(worker.Config{Source: store.NewSource(s, name), Queue: name,
			Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
				came <- d.Queue
				return nil
			})})
		must(t, err)
		all.Go(func() { _ = w.Run(ctx) })
	}
	for range queues {
		<-came
	}
	listening(t, server.URL, schema)
	c, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	next := func() (id int64) {
		must(t, c.QueryRow(t.Context(), "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&id))
		return id
	}
	<-time.After(2 * time.Second) // meanwhile it asks less and less often
	for left := 4; ; left-- {     // the server itself may use an ID, for an analysis of a table
		before := next()
		line.cutAt(never, false)
		<-time.After(seconds * time.Second)
		asked, used := line.questions(never), next()-before
		if asked <= 2*seconds+1 && used == 0 {
			break
		}
		if left == 0 {
			t.Errorf("%d queues that wait cost %d questions and %d transaction IDs in %d s", queues, asked, used, seconds)
			break
		}
	}
	_, err = open(t, server.URL, postgres.Options{Schema: schema}).Enqueue(t.Context(), nixie.Message{Queue: "q7"})
	must(t, err)
	if q := <-came; q != "q7" {
		t.Errorf("%s was picked up", q)
	}
	stop()
	all.Wait()
}

// TestHeartbeatsRest lets a process that holds nothing rest: it is not taken for dead, and what
// it claims afterwards is its own until it is dead.
func TestHeartbeatsRest(t *testing.T) {
	list, schema := crowd(t, 2)
	idle, other := list[0], list[1]
	_, err := other.Enqueue(t.Context(), nixie.Message{Queue: "q"}, nixie.Message{Queue: "q"})
	must(t, err)
	d := one(t, idle)
	if idle.Rest(t.Context()) {
		t.Error("it rests, and holds a lease")
	}
	must(t, idle.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
	if !idle.Rest(t.Context()) {
		t.Fatal("it does not rest")
	}
	c := begin(t)
	seen := func() (ahead time.Duration) {
		must(t, c.QueryRow(t.Context(), "select max(seen) - clock_timestamp() from "+schema+".owner").Scan(&ahead))
		return ahead
	}
	if ahead := seen(); ahead < 5*time.Minute {
		t.Errorf("it is on the list for %s", ahead)
	}
	d = one(t, idle)
	if ahead := seen(); ahead > 0 {
		t.Errorf("it holds a lease, and would be missed %s late", ahead)
	}
	must(t, idle.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
	h, err := other.Inspect(t.Context())
	must(t, err)
	if slices.ContainsFunc(h.Owners, func(o store.Owner) bool { return !o.Alive }) {
		t.Errorf("an owner is dead: %+v", h.Owners)
	}
	version, known, err := other.Ping(t.Context())
	must(t, err)
	if version != h.Schema || known != h.KnownSchema || known == 0 {
		t.Errorf("schema %d, known %d; health has %+v", version, known, h)
	}
}
