package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// otherSettings reads the settings of all queues but one. Of two calls that change the ways of
// notices the second waits here for the first.
func (v *verb) otherSettings(name string) (map[string]nixie.QueueSettings, error) {
	v.run("select pg_advisory_xact_lock(hashtext('" + v.store.opts.Schema + "'), -1)")
	others := map[string]nixie.QueueSettings{}
	v.read(func(r row) error {
		var other, text string
		if err := r.Scan(&other, &text); err != nil {
			return err
		}
		var settings nixie.QueueSettings
		err := fromJSON(text, &settings)
		others[other] = settings
		return err
	}, "select name, settings::text from @.queue where name <> $1", name)
	return others, v.send()
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

// Reorder implements engine.Tx.
func (v *verb) Reorder(q *engine.Queue, to *nixie.QueueSettings) error {
	return v.reorder(v.named[q.Name], to)
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
