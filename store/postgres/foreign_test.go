package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/tier"
	"github.com/nixie-go/nixie/store/postgres"
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
			ms[i] = nixie.Message{Queue: q, Type: "own", Stream: fmt.Sprint("s", i%10)}
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

// during goes round for so long and returns how many messages of each queue were
// delivered in a second that was spent on it.
func (a *around) during(length time.Duration) (speed [len(queues)]float64) {
	a.Helper()
	clear(a.spent)
	before, began := a.own, time.Now()
	for time.Since(began) < length {
		a.round()
	}
	for i, q := range queues {
		speed[i] = float64(a.own-before) / float64(len(queues)) / a.spent[q].Seconds()
	}
	return speed
}

// TestShow4_AForeignTransactionStaysOpen lets a transaction that has written, here
// and in a table of its own, stay open while others work: they go on, and what it
// enqueued arrives once when it commits.
func TestShow4_AForeignTransactionStaysOpen(t *testing.T) {
	const foreign = 1000
	seconds := 3
	if tier.Deep() {
		seconds = 60
	}
	tier.Proof{Name: "foreign-postgres", Unit: "seconds", Quick: 3, Deep: 60}.Run(t, func(t *testing.T, _ uint64) int {
		list, schema := crowd(t, 1)
		a := &around{T: t, st: list[0], spent: map[string]time.Duration{}, other: map[string]int{}}
		must(t, a.st.Configure(t.Context(), "strict", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""))
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
		before := a.during(open / 2)

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
		while := a.during(open)
		if len(a.other) > 0 {
			t.Errorf("%d messages came before their transaction had committed", len(a.other))
		}
		must(t, tx.Commit(t.Context()))

		for len(a.other) < foreign {
			a.round()
		}
		after := a.during(open / 2)
		for key, n := range a.other {
			if n != 1 {
				t.Errorf("message %s arrived %d times", key, n)
			}
		}
		for i, q := range queues {
			usual := (before[i] + after[i]) / 2
			t.Logf("%s: %.0f messages a second before, %.0f while the transaction was open (%.0f %%), %.0f after", q, before[i], while[i], 100*while[i]/usual, after[i])
			if tier.Deep() && while[i] < 0.9*usual {
				t.Errorf("delivery of %s fell from %.0f to %.0f messages a second", q, usual, while[i])
			}
		}
		t.Logf("%d messages arrived once when it had committed", len(a.other))
		sound(t, a.st)
		return seconds
	})
}
