// Command service takes in orders and ships them, with its own tables in PostgreSQL and its own
// pool of connections. Nixie uses that pool. $DATABASE_URL names a database in which nixie migrate
// up was run; the arguments are addresses to ship to. With the arguments repair, NUMBER and ADDRESS
// it corrects an order that could not be shipped, and ships it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

// shipOrder names the work, whose body is the number of an order.
var shipOrder = nixie.NewType[int]("ship-order", nixie.Queue("shipping"))

// shop is the service.
type shop struct {
	pool *pgxpool.Pool
	st   *postgres.Store
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL"), os.Args[1:]); err != nil {
		log.Fatal(err) //nolint:gocritic // the signals end with the program
	}
}

// run does what the arguments say, and works until nothing is left.
func run(ctx context.Context, url string, args []string) error {
	return serve(ctx, url, func(s *shop) error {
		if len(args) == 3 && args[0] == "repair" {
			if err := s.repair(ctx, args[1], args[2]); err != nil {
				return err
			}
			return s.work(ctx)
		}
		for _, address := range args {
			if err := s.order(ctx, address); err != nil {
				return err
			}
		}
		return s.work(ctx)
	})
}

// serve opens the shop while f runs.
func serve(ctx context.Context, url string, f func(*shop) error) (err error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err = pool.Exec(ctx, `create table if not exists orders (
		number int generated always as identity primary key, address text not null, shipped timestamptz)`); err != nil {
		return err
	}
	st, err := postgres.OpenPool(ctx, pool, postgres.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return f(&shop{pool, st})
}

// order takes in an order. The order and the work commit together.
func (s *shop) order(ctx context.Context, address string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var number int
		if err := tx.QueryRow(ctx, "insert into orders (address) values ($1) returning number", address).Scan(&number); err != nil {
			return err
		}
		_, err := shipOrder.Enqueue(ctx, s.st.Tx(tx), number, nixie.Key("order-"+strconv.Itoa(number)))
		return err
	})
}

// ship ships an order. Its row and the end of its message commit together, so it is shipped once.
func (s *shop) ship(ctx context.Context, job *nixie.Job[int]) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var address string
		err := tx.QueryRow(ctx, "update orders set shipped = now() where number = $1 returning address", job.Body).Scan(&address)
		if err != nil {
			return err
		}
		if address == "" {
			return nixie.Permanent(errors.New("the order has no address")) // not tried again
		}
		fmt.Println("shipped to", address)
		return s.st.Tx(tx).Complete(ctx, job.Delivery)
	})
}

// work ships what is there.
func (s *shop) work(ctx context.Context) error {
	w, err := worker.New(worker.Config{
		Source:  store.NewSource(s.st, "shipping"),
		Handler: nixie.Routes(shipOrder.Handle(s.ship)),
		Until:   worker.Until{Idle: true}, // a server leaves this out, and runs until ctx ends
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// repair writes the address of an order whose message died, and sends the letter back to the queue.
func (s *shop) repair(ctx context.Context, number, address string) error {
	if _, err := s.pool.Exec(ctx, "update orders set address = $2 where number = $1::text::int", number, address); err != nil {
		return err
	}
	clerk, err := office.New(office.Config{Store: s.st, Actor: "ann"})
	if err != nil {
		return err
	}
	request := &office.OperationRequest{
		Event: store.OnRedrive, Filter: nixie.Filter{Keys: []string{"order-" + number}}, Reason: "the address is known",
		Force: true, // a permanent failure needs a word that it is repaired
	}
	operation, err := clerk.Begin(ctx, request)
	if err != nil {
		return err
	}
	_, err = clerk.Run(ctx, operation.Operation, request)
	return err
}
