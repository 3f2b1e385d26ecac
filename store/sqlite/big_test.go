package sqlite_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestLogOfWritesIsBounded writes while readers always overlap, so that there is
// no moment without one: the log of writes beside the file stays small.
func TestLogOfWritesIsBounded(t *testing.T) {
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 2000)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := s.Messages(ctx, nixie.Filter{Queues: []string{"q"}}, store.Page{Limit: 200, Whole: true}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	largest, written := int64(0), int64(0)
	body := make([]byte, 1<<20)
	for range 300 {
		_, err := s.Enqueue(ctx, nixie.Message{Queue: "big", Body: body})
		must(t, err)
		written += int64(len(body))
		info, err := os.Stat(path + "-wal")
		must(t, err)
		largest = max(largest, info.Size())
	}
	stop()
	wg.Wait()
	t.Logf("%d MiB were written, the log grew to %d MiB", written>>20, largest>>20)
	if largest > 160<<20 {
		t.Errorf("the log grew to %d MiB", largest>>20)
	}
}

// TestBigStore looks at what grows with a store: opening after a crash, the
// overview, a claim behind many messages that are not due.
func TestBigStore(t *testing.T) {
	if os.Getenv("NIXIE_BIG") == "" {
		t.Skip("measures")
	}
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 200_000)
	took := func(what string, f func() error) {
		start := time.Now()
		if err := f(); err != nil {
			t.Error(what, err)
		}
		t.Logf("%-30s %s", what, time.Since(start))
	}
	ms := make([]nixie.Message, 10_000)
	for i := range ms {
		ms[i] = nixie.Message{Queue: "later", Delay: time.Hour, Body: make([]byte, 200)}
	}
	took("enqueue 300k later", func() error {
		for range 30 {
			if _, err := s.Enqueue(t.Context(), ms...); err != nil {
				return err
			}
		}
		return nil
	})
	took("claim none of later", func() error { _, err := s.Claim(t.Context(), "later", nixie.Want{Max: 10}); return err })
	fill(t, s, "later", 1)
	took("claim one of later", func() error { _, err := s.Claim(t.Context(), "later", nixie.Want{Max: 10}); return err })
	took("queues", func() error { _, err := s.Queues(t.Context()); return err })
	took("claim 10000", func() error { _, err := s.Claim(t.Context(), "q", nixie.Want{Max: 10000}); return err })
	took("check", func() error { _, err := s.Check(t.Context()); return err })
	crashed, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
	must(t, err)
	_, err = crashed.Claim(t.Context(), "q", nixie.Want{Max: 10000})
	must(t, err)
	crashed.Crash()
	took("open after a crash", func() error { o, err := sqlite.Open(path, sqlite.Options{Reserve: -1}); must(t, err); return o.Close() })
	took("void 10000", func() error { _, err := s.Claim(t.Context(), "q", nixie.Want{Max: 10}); return err })
	storetest.Invariants(t, s)
}
