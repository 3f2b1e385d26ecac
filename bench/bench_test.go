package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/bench/match"
	"github.com/nixie-go/nixie/bench/match/matchtest"
)

// TestMain makes the test's own program the child that measures.
func TestMain(m *testing.M) {
	if match.IsChild(os.Args[1:]) {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEverythingOnce(t *testing.T) { matchtest.Once(t, programme(), nil) }

func TestSteady(t *testing.T) { matchtest.Steady(t, programme()) }

func TestPeersSynchronous(t *testing.T) {
	err := programme().Run(t.Context(), []string{"-peers-synchronous", "off"}, &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "give NORMAL or FULL") {
		t.Errorf("%v", err)
	}
}
