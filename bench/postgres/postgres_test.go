package main

import (
	"os"
	"testing"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/match/matchtest"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

var testServer testservers.Postgres

// TestMain makes the test's own program the child that measures.
func TestMain(m *testing.M) {
	if match.IsChild(os.Args[1:]) {
		main()
		return
	}
	os.Exit(testservers.WithPostgres(m.Run, &testServer))
}

func TestEverythingOnce(t *testing.T) {
	testServer.Need(t)
	t.Setenv(given, testServer.URL)
	matchtest.Once(t, programme(), func(s contest.Scenario, e *contest.Entrant, r *contest.Result) {
		if r.WAL <= 0 || r.Indexes <= 0 || r.Indexes >= r.File {
			t.Errorf("%s, %s: %+v", s, e.Name, r)
		}
	})
}

func TestSteady(t *testing.T) {
	testServer.Need(t)
	t.Setenv(given, testServer.URL)
	matchtest.Steady(t, programme())
}
