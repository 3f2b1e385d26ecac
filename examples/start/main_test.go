package main

import (
	"path/filepath"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestRun runs the program twice: what was sent is not sent again, and one invoice is a letter.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "billing.db")
	for _, customers := range [][]string{{"Ada", "", "Grace"}, nil} {
		if err := run(t.Context(), file, customers); err != nil {
			t.Fatal(err)
		}
	}
	st, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	clerk, err := office.New(office.Config{Store: st, Actor: "clerk"})
	if err != nil {
		t.Fatal(err)
	}
	letters := 0
	for l, err := range clerk.AllLetters(t.Context(), nixie.Filter{}, false) {
		if err != nil || l.Message.Key != "invoice-2" {
			t.Error(l.Message.Key, err)
		}
		letters++
	}
	if letters != 1 {
		t.Errorf("%d letters", letters)
	}
}
