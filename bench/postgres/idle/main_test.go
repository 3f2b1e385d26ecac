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
	o := options{queues: []int{2}, settle: 10 * time.Millisecond, length: time.Second, reportOnly: true}
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"SQLite", "PostgreSQL", "target loop-group-idle-sqlite", "target loop-group-memory-postgres"} {
		if text := out.String(); !strings.Contains(text, part) {
			t.Errorf("it says nothing of %s: %s", part, text)
		}
	}
}
