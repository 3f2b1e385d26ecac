package postgres

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// queueRow is a row of the table queue while a transaction uses it.
type queueRow struct {
	n        int64
	name     string
	settings nixie.QueueSettings
	text     string // the settings as they are kept
	asked    int64  // when a claim was last noted
}

// readQueues reads queues; what was read before is read again.
func (t *tx) readQueues(where string, args ...any) {
	t.read(func(r row) error {
		q := &queueRow{}
		if err := r.Scan(&q.n, &q.name, &q.text, &q.asked); err != nil {
			return err
		}
		t.queues[q.n], t.named[q.name] = q, q
		return fromJSON(q.text, &q.settings)
	}, "select n, name, settings::text, asked from @.queue where "+where, args...)
}

// lockQueues keeps queues from being reordered until the transaction ends. All calls that add
// messages to a queue hold this lock; it keeps no other call from anything.
func (t *tx) lockQueues(where string, args ...any) {
	t.run(fill("lock_queues.sql", "queues", where, "schema", t.store.opts.Schema), args...)
}

// openQueues locks and reads the named queues, and makes those that do not exist. It sends what was
// collected before.
func (t *tx) openQueues(names []string) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	t.lockQueues("name = any($1)", names)
	t.readQueues("name = any($1)", names)
	if err := t.send(); err != nil {
		return err
	}
	var missing []string
	for _, name := range names {
		if t.named[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	t.made = missing
	t.makeQueues(missing, new(bool))
	t.lockQueues("name = any($1)", missing)
	t.readQueues("name = any($1)", missing)
	return t.send()
}

// makeQueues makes queues, and tells whether any did not exist.
func (t *tx) makeQueues(names []string, made *bool) {
	var zero nixie.QueueSettings
	t.read(func(row) error { *made = true; return nil }, "make_queues.sql", names, ageOf(&zero), int64(zero.LeaseOrDefault()))
	t.run("insert into @.chain (queue) select n from @.queue where name = any($1) order by n on conflict do nothing", names)
	t.run("make_cursors.sql", names)
}

// dropUnused removes the queues that were made for messages that were then refused.
func (t *tx) dropUnused() {
	used := map[int64]bool{}
	for _, m := range t.work.changed {
		used[m.queue] = true
	}
	for _, name := range t.made {
		if n := t.named[name].n; !used[n] {
			t.run("delete from @.chain where queue = $1 and number = 0", n)
			t.run("delete from @.cursor where queue = $1 and not exists (select from @.message where queue = $1)", n)
			t.run("delete_new_queue.sql", n)
		}
	}
}

// ageOf returns how many nanoseconds one priority is worth.
func ageOf(s *nixie.QueueSettings) int64 { return -s.DueRank(0, 1) }

// saveSettings writes the settings of a queue, whose row is locked.
func (t *tx) saveSettings(q *queueRow) {
	t.run("save_settings.sql", q.n, toJSON(false, q.settings), q.settings.Paused,
		q.settings.Order == nixie.OrderStrict, ageOf(&q.settings), int64(q.settings.LeaseOrDefault()))
}
