package tasks_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	peer "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/nixie-go/nixie/bench/postgres/tasks"
	"github.com/nixie-go/nixie/bench/postgres/tasks/ours"
	"github.com/nixie-go/nixie/bench/postgres/tasks/river"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

var server testservers.Postgres

func TestMain(m *testing.M) { os.Exit(testservers.WithPostgres(m.Run, &server)) }

// library is one way to do the tasks.
type library struct {
	take  func() error
	work  func(context.Context, tasks.Ship) error
	again func() (int, error)
}

// TestRiver and TestOurs take in two orders. One is shipped at its second attempt. The other is
// wrong and dies, and is shipped when it was repaired and runs again.
func TestRiver(t *testing.T) {
	pool := database(t)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err == nil {
		_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	}
	client, failed := peer.NewClient(driver, &peer.Config{})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	ships(t, library{
		func() error { return river.Take(t.Context(), pool, client) },
		func(ctx context.Context, ship tasks.Ship) error { return river.Work(ctx, pool, ship) },
		func() (int, error) { return river.Again(t.Context(), client) },
	})
}

func TestOurs(t *testing.T) {
	pool := database(t)
	schema, err := postgres.NewSchema(server.URL, postgres.Options{})
	if err == nil {
		_, err = schema.Up(t.Context(), 0, store.Grants{})
	}
	if err != nil {
		t.Fatal(err)
	}
	st, err := postgres.OpenPool(t.Context(), pool, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // nothing is kept
	ships(t, library{
		func() error { return ours.Take(t.Context(), pool, st) },
		func(ctx context.Context, ship tasks.Ship) error { return ours.Work(ctx, st, ship) },
		func() (int, error) { return ours.Again(t.Context(), st) },
	})
}

// database returns connections to a database with a table of orders.
func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	server.Need(t)
	pool, err := pgxpool.New(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `drop table if exists orders;
		create table orders (number int generated always as identity primary key)`); err != nil {
		t.Fatal(err)
	}
	return pool
}

func ships(t *testing.T, l library) {
	t.Helper()
	for range 2 {
		if err := l.take(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	attempts, wrong := map[int]int{}, true
	// until works until an order has had some attempts.
	until := func(want map[int]int) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		err := l.work(ctx, func(_ context.Context, order int) error {
			mu.Lock()
			defer mu.Unlock()
			attempts[order]++
			if attempts[1] >= want[1] && attempts[2] >= want[2] {
				stop()
			}
			switch {
			case order == 2 && wrong:
				return tasks.ErrWrong
			case order == 1 && attempts[1] == 1:
				return errors.New("the depot is busy")
			}
			return nil
		})
		if err != nil || attempts[1] != want[1] || attempts[2] != want[2] {
			t.Fatalf("attempts %v, want %v: %v", attempts, want, err)
		}
	}
	until(map[int]int{1: 2, 2: 1})
	wrong = false
	if n, err := l.again(); n != 1 || err != nil {
		t.Fatalf("%d run again, %v", n, err)
	}
	until(map[int]int{1: 2, 2: 2})
	if n, err := l.again(); n != 0 || err != nil {
		t.Errorf("%d run again when all are shipped, %v", n, err)
	}
}
