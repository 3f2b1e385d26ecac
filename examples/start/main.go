// Command start is the program of docs/start/go.md: it sends an invoice to each customer that its
// arguments name.
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

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// Invoice is the body of a message.
type Invoice struct {
	Number   int
	Customer string
}

// sendInvoice is known to producers and to workers.
var sendInvoice = nixie.NewType[Invoice]("send-invoice", nixie.Queue("billing"))

// send handles one message.
func send(_ context.Context, job *nixie.Job[Invoice]) error {
	if job.Body.Customer == "" {
		return nixie.Permanent(errors.New("the invoice has no customer")) // not tried again
	}
	fmt.Println("sent", job.Body.Number, "to", job.Body.Customer)
	return nil // any other error is tried again
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "billing.db", os.Args[1:]); err != nil {
		log.Fatal(err) //nolint:gocritic // the signals end with the program
	}
}

// run enqueues an invoice for each customer and works until nothing is left.
func run(ctx context.Context, file string, customers []string) (err error) {
	st, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	for i, customer := range customers {
		key := "invoice-" + strconv.Itoa(i+1)
		invoice := Invoice{Number: i + 1, Customer: customer}
		if _, err := sendInvoice.Enqueue(ctx, st, invoice, nixie.Key(key), nixie.DedupeKey(key)); err != nil {
			return err
		}
	}
	w, err := worker.New(worker.Config{
		Source:  store.NewSource(st, "billing"),
		Handler: nixie.Routes(sendInvoice.Handle(send)),
		Until:   worker.Until{Idle: true}, // a server leaves this out, and runs until ctx ends
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
