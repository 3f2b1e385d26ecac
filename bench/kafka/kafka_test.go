package main

import (
	"os"
	"testing"

	"github.com/nixie-go/nixie/internal/testservers"
)

var server testservers.Kafka

// TestMain makes the test's own program the child that measures.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		main()
		return
	}
	os.Exit(testservers.WithKafka(m.Run, &server))
}

// Every measurement once, with few records; each is checked.
func TestEverythingOnce(t *testing.T) {
	server.Need(t)
	for _, m := range measurements() {
		o := options{records: 4_000}
		if r, err := measure(t.Context(), server.Seed, &m, o); err != nil || r.N < 10 || r.Wall <= 0 || r.CPU <= 0 || r.Peak <= 0 {
			t.Errorf("%s: %+v, %v", m.name, r, err)
		}
	}
}
