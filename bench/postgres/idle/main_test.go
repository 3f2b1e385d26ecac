package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

var server testservers.Postgres

func TestMain(m *testing.M) { os.Exit(testservers.WithPostgres(m.Run, &server)) }

// TestBothStores measures each for a moment.
func TestBothStores(t *testing.T) {
	server.Need(t)
	var out bytes.Buffer
	o := options{queues: []int{2}, settle: 10 * time.Millisecond, length: time.Second}
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "SQLite") || !strings.Contains(text, "PostgreSQL") {
		t.Error(text)
	}
}
