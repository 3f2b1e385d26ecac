package main

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// A desk receives and settles one message at a time, so a test waits for nothing.
func TestAnInvoiceWithoutCustomerDies(t *testing.T) {
	st := memory.New(memory.Options{})
	if _, err := sendInvoice.Enqueue(t.Context(), st, Invoice{Number: 7}); err != nil {
		t.Fatal(err)
	}
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "billing")})
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := desk.Receive(t.Context(), nixie.Want{Max: 1})
	if err != nil || len(deliveries) != 1 {
		t.Fatal(deliveries, err)
	}
	d := deliveries[0]
	handler := nixie.Routes(sendInvoice.Handle(send))
	settled, err := desk.Done(t.Context(), d, handler.Handle(t.Context(), d), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if settled.Verb != nixie.Bury || settled.Failure.Text != "the invoice has no customer" {
		t.Errorf("%s: %+v", settled.Verb, settled.Failure)
	}
}
