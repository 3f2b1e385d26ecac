package sqlite_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestLogOfWritesIsBounded writes while readers always overlap, so that there is
// no moment without one: the WAL stays small.
func TestLogOfWritesIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes until the log is full")
	}
	path := storePath(t)
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 2000)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := s.Messages(ctx, nixie.Filter{Queues: []string{"q"}}, store.Page{Limit: 5, Whole: true}); err != nil &&
					ctx.Err() == nil {
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
	if largest > 2*written/3 {
		t.Errorf("the log grew to %d MiB", largest>>20)
	}
}
