package postgres

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adjust implements store.Overview.
func (s *Store) Adjust(ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error) (nixie.QueueSettings,
	error) {
	var settings nixie.QueueSettings
	err := s.write(ctx, func(t *tx) (err error) {
		settings, err = t.adjust(queue, actor, reason, edit)
		return err
	})
	return settings, err
}

func (t *tx) adjust(queue, actor, reason string, edit func(*nixie.QueueSettings) error) (settings nixie.QueueSettings, err error) {
	made, err := t.lockQueue(queue)
	if err != nil {
		return settings, err
	}
	q := t.named[queue]
	settings = q.settings
	if err := edit(&settings); err != nil {
		return settings, err
	}
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return settings, err
	}
	if err := settings.Check(); err != nil || !made && q.settings == settings {
		return settings, err
	}
	if err := t.refuseNotices(q, &settings); err != nil {
		return settings, err
	}
	if err := t.reorder(q, &settings); err != nil {
		return settings, err
	}
	q.settings = settings
	t.saveSettings(q)
	t.record(q.n, actor, store.OnConfigure, nixie.ID{}, reason)
	if !settings.Paused {
		t.wake(q.name)
	}
	return settings, nil
}

// tried implements Tried of store.Features.
func (s *Store) tried(ctx context.Context, queue, actor, reason string) error {
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		t.clock()
		t.readQueues("name = $1", queue)
		if err := t.send(); err != nil {
			return err
		}
		q := t.named[queue]
		if q == nil {
			return nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", queue)
		}
		t.record(q.n, actor, store.OnTry, nixie.ID{}, reason)
		return nil
	})
}

// refuseNotices asks [lifecycle.RefuseNotices]. Of two calls that change the ways of notices the
// second waits for the first.
func (t *tx) refuseNotices(q *queueRow, set *nixie.QueueSettings) error {
	if set.DeadLetterTo == "" && !set.Closed {
		return nil
	}
	t.run("select pg_advisory_xact_lock(hashtext('" + t.store.opts.Schema + "'), -1)")
	others := map[string]nixie.QueueSettings{}
	t.read(func(r row) error {
		var name, text string
		if err := r.Scan(&name, &text); err != nil {
			return err
		}
		var settings nixie.QueueSettings
		err := fromJSON(text, &settings)
		others[name] = settings
		return err
	}, "select name, settings::text from @.queue where n <> $1", q.n)
	if err := t.send(); err != nil {
		return err
	}
	return lifecycle.RefuseNotices(q.name, set, others)
}

// lockQueue locks and reads a queue for its settings to be changed, and makes it if it does not
// exist.
func (t *tx) lockQueue(name string) (made bool, err error) {
	lock := func() error {
		t.run("select from @.queue where name = $1 for update", name)
		t.readQueues("name = $1", name)
		return t.send()
	}
	t.clock()
	if err := lock(); err != nil || t.named[name] != nil {
		return false, err
	}
	t.makeQueues([]string{name}, &made)
	return made, lock()
}

// reorder applies a new order to existing streams. Between an order and none no message may be on
// its way: which came first is not known. It waits for calls that are adding messages.
func (t *tx) reorder(q *queueRow, settings *nixie.QueueSettings) error {
	old := q.settings
	if old.Order == settings.Order && old.DeadHead == settings.DeadHead {
		return nil
	}
	t.run("select pg_advisory_xact_lock(hashtext('"+t.store.opts.Schema+"'), $1)", q.n)
	t.lockOrderedPaths(q.n)
	t.run("select from @.stream where queue = $1 order by name for update", q.n)
	t.run("select from @.letter where queue = $1 and rank > 0 order by pos for update", q.n)
	if err := t.send(); err != nil {
		return err
	}
	if old.Ordered() != settings.Ordered() {
		var busy bool
		t.read(func(r row) error { return r.Scan(&busy) }, "is_busy.sql", q.n)
		if err := t.send(); err != nil {
			return err
		}
		if busy {
			return store.Busy(q.name)
		}
		t.run("update @.letter set stream = null, rank = 0, blocks = false where queue = $1 and rank > 0", q.n)
	}
	if settings.Order != nixie.OrderStrict {
		t.giveRowsToAll("s.queue = $1", q.n)
	}
	if !settings.Blocks() {
		t.run("unblock_letters.sql", q.n)
	}
	t.read(func(r row) error {
		var name string
		err := r.Scan(&name)
		t.markDirty(q.n, name)
		return err
	}, "select name from @.stream where queue = $1", q.n)
	return t.send()
}

// Purge implements store.Overview.
func (s *Store) Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error) {
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return 0, err
	}
	n := 0
	err := s.write(ctx, func(t *tx) (err error) {
		n, err = t.purgeQueue(queue, &filter, min(max(most, 0), nixie.MaxBatch), actor, reason)
		return err
	})
	return n, err
}

func (t *tx) purgeQueue(queue string, filter *nixie.Filter, most int, actor, reason string) (int, error) {
	t.clock()
	t.readQueues("name = $1", queue)
	if err := t.send(); err != nil {
		return 0, err
	}
	q := t.named[queue]
	if q == nil {
		return 0, nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", queue)
	}
	var found []nixie.ID
	w := messageWhere(filter, t.now)
	w.add("c.pos in ("+asked("waiting_messages")+")", q.n, q.n, q.n)
	t.read(func(r row) error {
		var id nixie.ID
		err := r.Scan((*idColumn)(&id))
		found = append(found, id)
		return err
	}, fmt.Sprintf("select c.id from @.current c where %s order by c.queue_pos limit %d", w, most), w.args...)
	if err := t.send(); err != nil || len(found) == 0 {
		return 0, err
	}
	if err := t.hold(found, false); err != nil {
		return 0, err
	}
	n := 0
	for _, id := range found {
		m := t.byID[id]
		if m == nil || m.Public() != nixie.Queued || m.queue != q.n {
			continue // another call was faster
		}
		if err := t.cancel(m, &store.Change{Verb: store.Cancel, Actor: actor, Reason: reason}); err != nil {
			return 0, err
		}
		n++
	}
	if n > 0 {
		t.record(q.n, actor, store.OnPurge, nixie.ID{}, fmt.Sprintf("%d canceled: %s", n, reason))
	}
	return n, nil
}
