package itemdir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// A second count reads no file again that is as it was: one that says something else with the same
// size and time is counted as before. One that changed is read, and so is every file whose time of
// writing tells too little.
func TestCountsReadAFileOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := job(root, "nightly")
	for n := range 3 {
		put(t, folder, fmt.Sprint("item-", n), 3*n, nil) // of the reason timeout
	}
	s := open(t, root)
	count := func() string {
		t.Helper()
		queues, err := s.Queues(t.Context(), store.QueueQuery{})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(queues[0].Total)
		for _, g := range groups(t, s, nixie.Filter{}, store.ByReason) {
			text += fmt.Sprint(" ", g.Count, " ", g.Key)
		}
		return text
	}
	file := filepath.Join(folder, "item-1.json")
	change := func(old, now string, written time.Time) {
		t.Helper()
		raw, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(raw), old) {
			t.Fatalf("%v: %s", err, raw)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(raw), old, now, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, written, written); err != nil {
			t.Fatal(err)
		}
	}
	about, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, now string
		written  time.Time
		want     string
	}{
		{"", "", about.ModTime(), "3 3 timeout"},
		{`"Timeout"`, `"Unknown"`, about.ModTime(), "3 3 timeout"},
		{`"Unknown"`, `"Unknown"`, clock().Add(-time.Second), "3 2 timeout 1 unknown"},
		{`"Unknown"`, `"Timeout"`, clock().Add(-time.Second), "3 3 timeout"},
	} {
		change(c.old, c.now, c.written)
		if got := count(); got != c.want {
			t.Errorf("after %s became %s: %s, want %s", c.old, c.now, got, c.want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != "2 2 timeout" {
		t.Errorf("a file is gone: %s", got)
	}
}
