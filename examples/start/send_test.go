package main

import (
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/nixietest"
)

func TestAnInvoiceWithoutCustomerDies(t *testing.T) {
	h := nixie.Routes(sendInvoice.Handle(send))
	got := nixietest.Run(t, h, nixietest.Message(t, sendInvoice, Invoice{Number: 7}))
	if got[0].Letter == nil || got[0].LastFailure != "the invoice has no customer" {
		t.Errorf("%s: %s", got[0].State, got[0].LastFailure)
	}
}
