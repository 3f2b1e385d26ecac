package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// around is work that goes round: messages come, are claimed and end.
type around struct {
	*testing.T
	st    *postgres.Store
	own   int                      // messages of these rounds that have ended
	spent map[string]time.Duration // on claims and settlements, by queue
	other map[string]int           // of the foreign transaction, by key: how often they were handed out
}

// queues are the one without order and the one of strict streams.
var queues = [...]string{"loose", "strict"}

// round lets a hundred come, and ends all that can be claimed until they are among
// it.
func (a *around) round() {
	a.Helper()
	const each = 50
	goal := a.own + each*len(queues)
	for _, q := range queues {
		ms := make([]nixie.Message, each)
		for i := range ms {
			ms[i] = nixie.Message{Queue: q, Type: "own", Stream: fmt.Sprint("s", (a.own+i)%manyStreams)}
		}
		_, err := a.st.Enqueue(a.Context(), ms...)
		must(a.T, err)
	}
	ctx, stop := context.WithTimeout(a.Context(), time.Minute)
	defer stop()
	for a.own < goal {
		for _, q := range queues {
			a.work(ctx, q)
		}
	}
	if a.own > goal {
		a.Fatalf("%d ended, %d were there", a.own, goal)
	}
}

// work claims what it gets and ends it.
func (a *around) work(ctx context.Context, queue string) {
	a.Helper()
	began := time.Now()
	defer func() { a.spent[queue] += time.Since(began) }()
	ds, err := a.st.Claim(ctx, queue, nixie.Want{Max: 100})
	must(a.T, err) // also when messages do not come in time
	settlements := make([]nixie.Settlement, 0, len(ds))
	for _, d := range ds {
		if d.Type == "own" {
			a.own++
		} else {
			a.other[d.Key]++
		}
		settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
	}
	for _, err := range a.st.Settle(ctx, settlements) {
		must(a.T, err)
	}
}

// alternately lets two run alternately for so long, and returns how many times longer
// the first took for a message of each queue than the second. What else the machine
// does concerns both.
func alternately(length time.Duration, a, b *around) (times [len(queues)]float64) {
	a.Helper()
	clear(a.spent)
	clear(b.spent)
	for began := time.Now(); time.Since(began) < length; {
		a.round()
		b.round()
	}
	for i, q := range queues {
		times[i] = a.spent[q].Seconds() / b.spent[q].Seconds()
	}
	return times
}

// goRound makes the queues of a store.
func goRound(t *testing.T, st *postgres.Store) *around {
	t.Helper()
	must(t, store.Configure(t.Context(), st, "strict", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""))
	return &around{T: t, st: st, spent: map[string]time.Duration{}, other: map[string]int{}}
}

// TestShow4_AForeignTransactionStaysOpen lets a transaction that has written, here
// and in a table of its own, stay open while others work: they go on, and what it
// enqueued arrives once when it commits. They are compared with those of another
// server.
func TestShow4_AForeignTransactionStaysOpen(t *testing.T) {
	const foreign = 1000
	seconds := proof.Count("foreign-postgres")
	proof.Run(t, "foreign-postgres", func(t *testing.T, _ uint64) int {
		list, schema := crowd(t, 1)
		quiet, err := postgres.Open(t.Context(), testservers.OwnPostgres(t).URL, postgres.Options{})
		must(t, err)
		defer func() { must(t, quiet.Close()) }()
		a, b := goRound(t, list[0]), goRound(t, quiet)
		conn, err := pgx.Connect(t.Context(), server.URL)
		must(t, err)
		defer func() { must(t, conn.Close(context.Background())) }()
		_, err = conn.Exec(t.Context(), "create table "+schema+".invoice (n integer)")
		must(t, err)
		defer func() {
			_, err := conn.Exec(context.Background(), "drop table "+schema+".invoice")
			must(t, err)
		}()
		open := time.Duration(seconds) * time.Second
		before := alternately(open/2, a, b)

		tx, err := conn.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "insert into "+schema+".invoice values (1)")
		must(t, err)
		ms := make([]nixie.Message, foreign)
		for i := range ms {
			ms[i] = nixie.Message{Queue: queues[i%2], Key: fmt.Sprint(i), Stream: fmt.Sprint("foreign", i%20)}
		}
		_, err = a.st.Tx(tx).Enqueue(t.Context(), ms...)
		must(t, err)
		while := alternately(open, a, b)
		if len(a.other) > 0 {
			t.Errorf("%d messages came before their transaction had committed", len(a.other))
		}
		must(t, tx.Commit(t.Context()))

		for len(a.other) < foreign {
			a.round()
		}
		for key, n := range a.other {
			if n != 1 {
				t.Errorf("message %s arrived %d times", key, n)
			}
		}
		for i, q := range queues {
			kept := before[i] / while[i]
			t.Logf("%s: a message took %.2f times what it took elsewhere, %.2f while the transaction was open: delivery is at %.0f %%", q,
				before[i], while[i], 100*kept)
			if proof.IsDeep() && kept < 0.9 {
				t.Errorf("delivery of %s fell to %.0f %%", q, 100*kept)
			}
		}
		t.Logf("%d messages arrived once when it had committed", len(a.other))
		sound(t, a.st)
		return seconds
	})
}

// transaction completes, which stays open: others go on meanwhile.
func TestLeaseThatEndsInATransaction(t *testing.T) {
	for _, order := range []nixie.Order{nixie.OrderNone, nixie.OrderStrict} {
		a, b, clock, _ := pair(t)
		must(t, store.Configure(t.Context(), a, "q", nixie.QueueSettings{Order: order}, "ann", ""))
		fill(t, a, 4)
		d := one(t, a)
		conn, err := pgx.Connect(t.Context(), server.URL)
		must(t, err)
		defer func() { must(t, conn.Close(context.Background())) }()
		tx, err := conn.Begin(t.Context())
		must(t, err)
		must(t, a.Tx(tx).Complete(t.Context(), d))
		clock.Advance(2 * time.Minute)
		for range 3 {
			if c := settle(t, b, one(t, b), nixie.Complete); c != "" {
				t.Error(c)
			}
		}
		must(t, tx.Commit(t.Context()))
		if ds, err := b.Claim(t.Context(), "q", nixie.Want{Max: 1}); err != nil || len(ds) > 0 {
			t.Errorf("%v came, error %v", ds, err)
		}
		sound(t, b)
	}
}

// TestDeadRowsAreNotSteppedOver counts what indexes read while a foreign transaction
// keeps PostgreSQL from removing what has ended: the hundredth claim reads no more than
// the first.
func TestDeadRowsAreNotSteppedOver(t *testing.T) {
	const rounds, most = 200, 200 // rows that indexes may find in each round
	server.Need(t)
	clock := storetest.NewClock()
	schemas.Lock()
	schema := unusedSchema() // dead rows of another test would be kept, and counted
	schemas.Unlock()
	t.Cleanup(func() { dropSchema(t, schema) })
	first, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Clock: clock.Now})
	must(t, err)
	fill(t, first, 1)
	must(t, store.Configure(t.Context(), first, "strict", strict(), "ann", ""))
	must(t, first.Close())
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), "begin isolation level repeatable read; select count(*) from "+schema+".message")
	must(t, err)
	for part := range 2 {
		before := readingOf(t, schema, ofIndexes)
		st, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Clock: clock.Now})
		must(t, err)
		for range rounds {
			_, err := st.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s"}, nixie.Message{Queue: "q"})
			must(t, err)
			for range 2 { // as members of one that are settled with what they say, and without
				if c := settle(t, st, one(t, st), nixie.Complete); c != "" {
					t.Fatal(c)
				}
			}
			_, err = st.Enqueue(t.Context(), nixie.Message{Queue: "strict", Stream: "s"}, nixie.Message{Queue: "strict", Stream: "s"})
			must(t, err)
			for range 2 { // the stream fills and empties
				ds, err := st.Claim(t.Context(), "strict", nixie.Want{Max: 1})
				must(t, err)
				must(t, st.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
			}
			clock.Advance(time.Minute) // the lease would be over
		}
		must(t, st.Close())
		execute(t, "analyze")
		deadlocks(t) // waits until they are gone, and have told what they read
		before.bounded(t, schema, ofIndexes, fmt.Sprintf("part %d, %d rounds", part, rounds), rounds*most)
	}
}
