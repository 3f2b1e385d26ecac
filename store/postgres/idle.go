package postgres

import (
	"context"
	"maps"
	"slices"
)

// A stream whose messages have ended keeps its row for a while: one that fills and
// empties again and again would leave a dead row behind each time, and all of them would be stepped over
// for as long as a transaction is open anywhere.

const (
	idleStreams = 5000            // that a beat of the heart looks at
	idleFor     = int64(60 * 1e9) // nanoseconds until they go
)

// forgetStreams removes streams that have been idle for a while, and goes on where it ended
// the last time. Those that others hold are passed by.
func (s *Store) forgetStreams(ctx context.Context) error {
	return s.transact(ctx, func(t *tx) error {
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
		}, "idle_streams.sql", s.looks.streams.Load(), idleStreams, t.now-idleFor)
		if err := t.send(); err != nil {
			return err
		}
		if met < idleStreams {
			last = 0 // from the first again
		}
		t.after = append(t.after, func() { s.looks.streams.Store(last) })
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
