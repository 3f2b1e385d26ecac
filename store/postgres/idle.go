package postgres

import (
	"context"
	"maps"
	"slices"
)

// A stream whose messages have ended keeps its row for a while. If it were removed at once, a
// stream that fills and empties again and again would leave many dead rows, and statements would
// step over them for as long as any transaction is open.

const (
	idleStreams = 5000            // checked with each heartbeat
	idleFor     = int64(60 * 1e9) // nanoseconds until they go
)

// forgetStreams removes streams that have been idle for a while. It continues where it ended the
// last time, and skips streams that others have locked.
func (s *Store) forgetStreams(ctx context.Context) error {
	return s.transact(ctx, s.pool, func(t *tx) error {
		t.quiet = true
		t.clock()
		if err := t.send(); err != nil {
			return err
		}
		var idle []int64
		met, last := 0, int64(0)
		t.read(func(r row) error {
			var over bool
			err := r.Scan(&last, &over)
			if over {
				idle = append(idle, last)
			}
			met++
			return err
		}, "idle_streams.sql", s.seen.streams.Load(), idleStreams, t.now-idleFor)
		if err := t.send(); err != nil {
			return err
		}
		if met < idleStreams {
			last = 0 // from the first again
		}
		t.after = append(t.after, func() { s.seen.streams.Store(last) })
		if len(idle) == 0 {
			return nil
		}
		held := map[int64]bool{}
		t.lock(&held, "select n from @.stream where n = any($1) order by queue, name for update skip locked", idle)
		if err := t.send(); err != nil {
			return err
		}
		t.run("delete_unused_streams.sql", slices.Collect(maps.Keys(held)))
		return nil
	})
}
