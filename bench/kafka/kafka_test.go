package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof/testservers"
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

// The test runs every measurement once, with few records and all checks.
func TestEverythingOnce(t *testing.T) {
	server.Need(t)
	for _, m := range measurements() {
		o := options{records: 4_000}
		if r, err := measure(t.Context(), server.Seed, &m, o); err != nil || r.N < 10 || r.Wall <= 0 || r.CPU <= 0 || r.Peak <= 0 {
			t.Errorf("%s: %+v, %v", m.name, r, err)
		}
	}
}

// A target compares processor time in its direction; the clock does not decide.
func TestTargets(t *testing.T) {
	of := func(cpu, wall time.Duration) []result { return []result{{N: 1000, CPU: cpu, Wall: wall, Peak: 100}} }
	results := map[string][]result{"a": of(4*time.Millisecond, time.Second), "b": of(2*time.Millisecond, time.Second/4)}
	for want, target := range map[string]target{
		"target t 2.00 want at most 2.00 ok (2.00 to 2.00; processor 4.00 µs against 2.00; by the clock 4.00)": {
			name: "t", one: "a", other: "b", most: 2,
		},
		"target t 2.00 want at most 1.90 short (2.00 to 2.00; processor 4.00 µs against 2.00; by the clock 4.00)": {
			name: "t", one: "a", other: "b", most: 1.9,
		},
		"target t 2.00 want 3.00 short (2.00 to 2.00; processor 2.00 µs against 4.00; by the clock 4.00)": {
			name: "t", one: "b", other: "a", least: 3,
		},
		"target t 0.50 want at most 1.00 ok (0.50 to 0.50)": {
			name: "t", one: "a", most: 1, memory: 200,
		},
		"": {name: "t", one: "a", other: "unknown", most: 1},
	} {
		if line, ok := target.judge(results); line != want || ok != strings.Contains(want, " ok ") {
			t.Errorf("got  %s, %v\nwant %s", line, ok, want)
		}
	}
}
