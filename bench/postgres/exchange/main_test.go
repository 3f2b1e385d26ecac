package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/bench/postgres/compare"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

var server testservers.Postgres

func TestMain(m *testing.M) { os.Exit(testservers.WithPostgres(m.Run, &server)) }

// TestEachWay measures a few calls.
func TestEachWay(t *testing.T) {
	server.Need(t)
	var out bytes.Buffer
	o := compare.Options{Rounds: 1, Count: desks, ReportOnly: true}
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"two calls, one message", "one call, 20 messages, 8 desks", "target exchange-one"} {
		if text := out.String(); !strings.Contains(text, part) {
			t.Errorf("it says nothing of %s: %s", part, text)
		}
	}
}
