package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestFewLetters(t *testing.T) {
	j := &job{letters: 500, messages: 6000, groups: 20, rounds: 2, folder: t.TempDir(), length: time.Second}
	if err := j.store(t.Context(), "sqlite", "sqlite://"+j.file(), func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, target := range j.targets {
		names += target.name + " "
	}
	for _, name := range []string{"median", "p99", "page", "assets", "watchers"} {
		if !strings.Contains(names, "console-sqlite-"+name) {
			t.Errorf("%s was not measured, only %s", name, names)
		}
	}
}

func TestTargetSaysWhatIsShort(t *testing.T) {
	for want, target := range map[string]target{
		"target t 2.0 ms want at most 3 ok: it":    {"t", 2, 3, "ms", "it"},
		"target t 3.5 ms want at most 3 short: it": {"t", 3.5, 3, "ms", "it"},
	} {
		if target.String() != want {
			t.Errorf("it says %q, not %q", target, want)
		}
	}
}
