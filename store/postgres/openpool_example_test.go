package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/postgres"
)

// A service with a pool of its own needs no second one: an order and the message about it commit
// together. Its database was prepared once, by nixie migrate up.
func ExampleOpenPool() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	st, err := postgres.OpenPool(ctx, pool, postgres.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders (number) values (7)"); err != nil {
			return err
		}
		_, err := st.Tx(tx).Enqueue(ctx, nixie.Message{Queue: "mail", Key: "order-7", Body: []byte("thank you")})
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := st.Close(); err != nil { // before the pool, which stays open
		fmt.Println(err)
	}
}

// TestExampleOpenPool runs the example where there is a server, and finds what it did.
func TestExampleOpenPool(t *testing.T) {
	server.Need(t)
	run(t, server.URL, "create database shop")
	defer run(t, server.URL, "drop database shop")
	url := strings.Replace(server.URL, "/postgres?", "/shop?", 1)
	run(t, url, "create table orders (number int)")
	st, err := postgres.Open(t.Context(), url, postgres.Options{})
	must(t, err)
	defer func() { must(t, st.Close()) }()
	t.Setenv("DATABASE_URL", url)
	ExampleOpenPool()
	ds, err := st.Claim(t.Context(), "mail", nixie.Want{Max: 2})
	must(t, err)
	if len(ds) != 1 || ds[0].Key != "order-7" {
		t.Errorf("enqueued %v", ds)
	}
}
