//go:build linux

package cli_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// What a letter and a message may take that are found by the end of an ID, among 1,000,000. A
// message has no index of ends: the IDs of all are looked through.
const (
	mostLetter  = 10 * time.Millisecond
	mostMessage = 500 * time.Millisecond
)

// TestEndings finds letters by the last digits of their IDs, and messages by those of theirs, among
// very many.
func TestEndings(t *testing.T) {
	proof.Run(t, "endings", func(t *testing.T, _ uint64) int {
		n := proof.Count("endings")
		inBothStores(t, func(d *workspace, st store.Store) { d.manyEndings(st, n) })
		return n
	})
}

// manyEndings asks a store with n letters. Every second one has an ID that the store did not make,
// as letters of other stores do.
func (d *workspace) manyEndings(st store.Store, n int) {
	var some []nixie.Receipt
	ids, now := new(store.IDs), time.Now()
	for at := 0; at < n; at += 1000 {
		letters := make([]nixie.Letter, min(1000, n-at))
		for i := range letters {
			letters[i] = strangerLetter((at+i)%50, now)
			letters[i].Message.Key = ""
			if i%2 == 0 {
				letters[i].ID, letters[i].Message.ID = ids.New(now), ids.New(now)
			}
		}
		receipts, errs := st.Adopt(d.t.Context(), letters, "tester", "")
		if err := errors.Join(errs...); err != nil {
			d.t.Fatal(err)
		}
		some = append(some[:min(len(some), 20)], receipts...)
	}
	clerk, err := office.New(office.Config{Store: st, Actor: "tester"})
	if err != nil {
		d.t.Fatal(err)
	}
	some = some[:min(len(some), 40)]
	messages := make([]nixie.ID, len(some))
	i := 0
	letter := func(ending string) nixie.Letter {
		l, err := clerk.Letter(d.t.Context(), ending)
		if err != nil {
			d.t.Fatal(err)
		}
		return l
	}
	for i, r := range some {
		messages[i] = letter(r.ID.String()).Message.ID
	}
	d.best("a letter", mostLetter, func() {
		i = (i + 1) % len(some)
		if l := letter(endOf(some[i].ID)); l.ID != some[i].ID {
			d.t.Fatalf("letter %s is found as %s", some[i].ID, l.ID)
		}
	})
	d.best("a message", mostMessage, func() {
		i = (i + 1) % len(messages)
		if m, err := clerk.Message(context.Background(), endOf(messages[i])); err != nil || m.ID != messages[i] {
			d.t.Fatalf("message %s is found as %s: %v", messages[i], m.ID, err)
		}
	})
	d.best("a letter of none", mostMessage, func() {
		if _, err := clerk.Letter(d.t.Context(), "1a2b3c4d"); nixie.CodeOf(err) != nixie.CodeNotFound {
			d.t.Fatalf("a letter that is not there: %v", err)
		}
	})
}

// endOf returns what a table shows of an ID.
func endOf(id nixie.ID) string { return id.String()[36-8:] }
