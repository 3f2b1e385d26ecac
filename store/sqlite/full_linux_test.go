package sqlite_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// smallDisk mounts a small file system for the test, or skips it.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a small disk cannot be mounted (%v): run as root", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fillUp fills a file system but for some bytes; the function makes room again.
func fillUp(t *testing.T, folder string, left int64) (room func()) {
	t.Helper()
	name := filepath.Join(folder, "filler")
	f, err := os.Create(name)
	must(t, err)
	size, err := io.Copy(f, endless{})
	if !strings.Contains(fmt.Sprint(err), syscall.ENOSPC.Error()) {
		t.Fatalf("the disk takes %d bytes: %v", size, err)
	}
	must(t, f.Truncate(max(0, size-left)))
	must(t, f.Close())
	return func() { must(t, os.Remove(name)) }
}

// endless is zeros.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// ledger records the answers that callers got about their messages.
type ledger struct {
	mu             sync.Mutex
	taken, unknown map[string]bool
}

// enqueue adds messages one by one until the disk is full.
func (l *ledger) enqueue(t *testing.T, s *sqlite.Store, name string) {
	body := bytes.Repeat([]byte(name), 100)
	for n := 0; ; n++ {
		key := fmt.Sprint(name, " ", n)
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key, Body: body})
		l.mu.Lock()
		switch nixie.CodeOf(err) {
		case "":
			l.taken[key] = true
		case nixie.CodeOutcomeUnknown:
			l.unknown[key] = true
		}
		l.mu.Unlock()
		if err == nil {
			continue
		}
		if text := err.Error(); !strings.Contains(text, "disk of store "+s.Path()+" is full: free some space") {
			t.Errorf("%s: told %q", key, text)
		}
		return
	}
}

// compare says which messages are there and should not be, or the other way round.
func (l *ledger) compare(t *testing.T, s *sqlite.Store) {
	t.Helper()
	there := map[string]bool{}
	page := store.Page{Limit: 1000}
	for {
		ms, next, err := s.Messages(t.Context(), nixie.Filter{}, page)
		must(t, err)
		for _, m := range ms {
			if there[m.Key] || !l.taken[m.Key] && !l.unknown[m.Key] {
				t.Errorf("message %q is there", m.Key)
			}
			there[m.Key] = true
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	for key := range l.taken {
		if !there[key] {
			t.Errorf("message %q was acknowledged and is not there", key)
		}
	}
}

// TestSmallDisk lets callers fill a real file system, each time up to another point,
// and makes room: the same store goes on, with what was acknowledged and nothing else,
// and readers never stop.
func TestSmallDisk(t *testing.T) {
	folder := smallDisk(t, "size=64m")
	s := open(t, filepath.Join(folder, "store.db"), sqlite.Options{Reserve: -1})
	l := &ledger{taken: map[string]bool{}, unknown: map[string]bool{}}
	const rounds, callers = 40, 4
	settled := 0
	for round := range rounds {
		room := fillUp(t, folder, int64(round)*5000)
		together(callers, func(i int) { l.enqueue(t, s, fmt.Sprint("round ", round, " caller ", i)) })
		l.compare(t, s)
		ds, full := s.Claim(t.Context(), "q", nixie.Want{Max: 3})
		if code := nixie.CodeOf(full); code != "" && code != nixie.CodeUnavailable {
			t.Errorf("claim: %v", full)
		}
		room()
		if full != nil {
			var err error
			ds, err = s.Claim(t.Context(), "q", nixie.Want{Max: 3})
			must(t, err)
		}
		for _, d := range ds {
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
			settled++
		}
	}
	l.compare(t, s)
	wrong, err := storetest.Broken(t.Context(), s)
	if must(t, err); len(wrong) > 0 {
		t.Errorf("broken: %q", wrong)
	}
	must(t, s.Close())
	s = open(t, s.Path(), sqlite.Options{Reserve: -1})
	l.compare(t, s)
	if left := unfinished(t, s); left != int64(len(l.taken)-settled) && len(l.unknown) == 0 {
		t.Errorf("%d messages are left of %d, %d were settled", left, len(l.taken), settled)
	}
	t.Logf("%d rounds: %d messages taken, %d of which no call told", rounds, len(l.taken), len(l.unknown))
	if len(l.taken) < rounds {
		t.Errorf("only %d messages were taken", len(l.taken))
	}
}

// What could not be noted for want of room does not spoil the notes that come after: who
// sweeps a killed process once there was room knows what had not begun.
func TestProgressAfterAFullDisk(t *testing.T) {
	s := open(t, filepath.Join(smallDisk(t, "size=8m"), "store.db"), sqlite.Options{Reserve: -1})
	fill(t, s, "q", 3)
	room := fillUp(t, filepath.Dir(s.Path()), 0)
	if _, err := s.Claim(t.Context(), "q", nixie.Want{Max: 3, LogProgress: true}); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Fatalf("a claim on a full disk: %v", err)
	}
	room()
	ds := claimed(t, s, 3, time.Hour)
	must(t, s.LogProgress(lease.Waiting, ds[0], ds[1]))
	must(t, s.LogProgress(lease.Succeeded, ds[1]))
	s.Crash()
	s = open(t, s.Path(), sqlite.Options{Reserve: -1})
	judged := 0
	for left := true; left; {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
		must(t, err)
		left = len(ds) > 0
		if left && ds[0].Abandoned {
			judged++
		}
	}
	if n := succeeded(t, s); judged != 1 || n != 1 {
		t.Errorf("%d judged and %d succeeded, want one each", judged, n)
	}
}
