package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/postgres"
)

// consumers do their work in transactions of pgx and of package database/sql.
type consumers struct {
	stores []*postgres.Store
	pool   *pgxpool.Pool
	db     *sql.DB
	effect string // a table
}

func newConsumers(t *testing.T) *consumers {
	t.Helper()
	list, schema := crowd(t, 2)
	pool, err := pgxpool.New(t.Context(), server.URL+"&pool_max_conns=16")
	must(t, err)
	t.Cleanup(pool.Close)
	db, err := sql.Open("pgx", server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	c := &consumers{list, pool, db, schema + ".effect"}
	_, err = pool.Exec(t.Context(), "create table "+c.effect+" (round integer)")
	must(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "drop table "+c.effect)
		must(t, err)
	})
	return c
}

// callerTx is a transaction of a caller.
type callerTx struct {
	*postgres.Tx
	exec     func(query string, args ...any) error
	commit   func() error
	rollback func() error
}

func (c *consumers) begin(i int) (callerTx, error) {
	ctx := context.Background()
	s := c.stores[i%len(c.stores)]
	if i%4 < 2 {
		tx, err := c.pool.Begin(ctx)
		return callerTx{s.Tx(tx), func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		}, func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }}, err
	}
	tx, err := c.db.BeginTx(ctx, nil)
	return callerTx{s.SQLTx(tx), func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}, tx.Commit, tx.Rollback}, err
}

// consume does the work of a round unless another consumer did, and reports whether it was
// committed.
func (c *consumers) consume(round, by int, rollBack bool) (did bool, err error) {
	tx, err := c.begin(by)
	if err != nil {
		return false, err
	}
	first, err := tx.Once(context.Background(), "consumer", fmt.Sprint(round))
	if err == nil && first {
		err = tx.exec("insert into "+c.effect+" (round) values ($1)", round)
	}
	if err != nil || rollBack {
		return false, errors.Join(err, tx.rollback())
	}
	return first, tx.commit()
}

// TestR46_InboxStoresADuplicateOnce lets sixteen consumers get the same message at
// once in each round. Three in ten roll back after they did their work. The work is
// done once if one of them commits, and one that rolled back leaves nothing.
func TestR46_InboxStoresADuplicateOnce(t *testing.T) {
	const peers, rounds = 16, 60
	c := newConsumers(t)
	rng := rand.New(rand.NewPCG(46, 0))
	for round := range rounds {
		var did [peers]bool
		committed := false
		var all sync.WaitGroup
		for i := range peers {
			rollBack := rng.IntN(10) < 3 || round%20 == 19
			committed = committed || !rollBack
			all.Go(func() {
				var err error
				if did[i], err = c.consume(round, i, rollBack); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		effects, winners := 0, 0
		must(t, c.pool.QueryRow(t.Context(), "select count(*) from "+c.effect+" where round = $1", round).Scan(&effects))
		for _, won := range did {
			if won {
				winners++
			}
		}
		if (effects == 1) != committed || effects != winners {
			t.Fatalf("round %d: %d effects, %d committed, one was to commit: %v", round, effects, winners, committed)
		}
	}
	sound(t, c.stores[0])
}

// TestAnEffectOnce lets a handler complete its message in the transaction of its
// effect, while its lease ends and another gets it too: the first is
// told, rolls back, and the effect is there once.
func TestAnEffectOnce(t *testing.T) {
	const messages = 40
	c := newConsumers(t)
	ms := make([]nixie.Message, messages)
	for i := range ms {
		ms[i] = nixie.Message{Queue: "q", Key: fmt.Sprint(i)}
	}
	_, err := c.stores[0].Enqueue(t.Context(), ms...)
	must(t, err)
	late, err := c.stores[0].Claim(t.Context(), "q", nixie.Want{Max: messages, Lease: nixie.MinLease})
	must(t, err)
	var again []*nixie.Delivery
	for len(again) < messages { // when the first leases are over
		ds, err := c.stores[1].Claim(t.Context(), "q", nixie.Want{Max: messages})
		must(t, err)
		again = append(again, ds...)
	}
	for i, d := range append(late, again...) {
		tx, err := c.begin(i)
		must(t, err)
		must(t, tx.exec("insert into "+c.effect+" (round) values ($1::text::int)", d.Key))
		err = tx.Complete(t.Context(), d)
		if want := map[bool]nixie.Code{true: nixie.CodeLeaseLost}[i < messages]; nixie.CodeOf(err) != want {
			t.Errorf("message %s, lease %d: told %v, want %q", d.Key, d.Lease.Number, err, want)
		}
		if err != nil {
			must(t, tx.rollback())
			continue
		}
		must(t, tx.commit())
	}
	var effects, different int
	must(t, c.pool.QueryRow(t.Context(), "select count(*), count(distinct round) from "+c.effect).Scan(&effects, &different))
	if effects != messages || different != messages {
		t.Errorf("%d effects of %d of %d messages", effects, different, messages)
	}
	sound(t, c.stores[0])
}
