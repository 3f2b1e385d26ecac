package docs

import (
	"os"
	"path"
	"strings"
	"testing"
)

// TestNamedTestsExist looks for every test that a document names.
func TestNamedTestsExist(t *testing.T) {
	tests := NewTests(os.DirFS(root))
	for _, name := range documents(t) {
		named := NamedTests(read(t, name))
		for _, test := range named {
			if why := tests.Missing(test); why != "" {
				t.Errorf("%s names %s: %s", name, test, why)
			}
		}
		if path.Base(name) == "guarantees.md" && len(named) == 0 {
			t.Errorf("%s names no test", name)
		}
	}
}

func TestMissing(t *testing.T) {
	tests := NewTests(os.DirFS(root))
	for text, why := range map[string]string{
		"`worker.TestDrain`":                       "",
		"`worker.TestDrain/patience`":              "",
		"`suite.Enqueue/AllOrNone`":                "",
		"`nixie.TestIDRoundTrip`":                  "",
		"`worker.TestGhost`":                       "no function TestGhost",
		"`worker.TestDrain/ghost`":                 "no part ghost",
		"`suite.Enqueue/Ghost`":                    "no part Ghost",
		"`internal/ghost.TestDrain`":               "no package",
		"`examples/orders.TestOrders`":             "",
		"`internal/proof/powerloss.TestPowerLoss`": "",
	} {
		named := NamedTests(text)
		if len(named) != 1 {
			t.Errorf("%s names %d tests", text, len(named))
			continue
		}
		if got := tests.Missing(named[0]); !strings.Contains(got, why) || why == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, why)
		}
	}
}
