package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// The phases of pruning in each queue. The inbox and documents come last, as the first two phases
// of queue 0.
const (
	phaseMessages = iota
	phaseRanges
	phaseLetters
	phaseAudit
	phases
)

// Prune implements store.Keeper.
func (s *Store) Prune(ctx context.Context, p store.Pruning) (done store.Pruned, err error) {
	if err := p.Check(); err != nil {
		return done, err
	}
	if _, err := parsePruneCursor(p.Cursor); err != nil {
		return done, err
	}
	err = s.write(ctx, func(t *tx) error {
		pr := &pruner{tx: t, dry: p.DryRun, left: int64(p.Limit)}
		cursor := p.Cursor
		t.run("select pg_advisory_xact_lock(hashtext('" + t.store.opts.Schema + "'), 0)") // one process at a time
		t.clock()
		t.readQueues("true")
		t.read(func(r row) error { return r.Scan(&pr.forgets) }, "select has_table_privilege('@.audit', 'delete')")
		if p.Resume {
			t.read(func(r row) error { return r.Scan(&cursor) }, "select value from @.meta where name = 'prune'")
		}
		if err := t.send(); err != nil {
			return err
		}
		at, err := parsePruneCursor(cursor)
		if err != nil {
			return err
		}
		if err := pr.from(at); err != nil {
			return err
		}
		done = pr.done
		if !p.DryRun {
			pr.removeAll()
			for _, fold := range folds {
				t.run(fold)
			}
			t.run("delete from @.death where kept and letters = 0")
		}
		if p.Resume {
			t.run("insert into @.meta (name, value) values ('prune', $1) on conflict (name) do update set value = excluded.value",
				done.Next)
		}
		return nil
	})
	return done, err
}

// pruneCursor says where pruning stands: how many rows of a phase in a queue were met that still
// exist.
type pruneCursor struct{ queue, phase, after int64 }

func parsePruneCursor(cursor string) (pruneCursor, error) {
	if cursor == "" {
		return pruneCursor{queue: 1}, nil
	}
	n, err := cursorNumbers(cursor, 3)
	if err != nil {
		return pruneCursor{}, err
	}
	if n[0] < 0 || n[1] < 0 || n[1] >= phases || n[2] < 0 {
		return pruneCursor{}, store.BadCursor(cursor)
	}
	return pruneCursor{n[0], n[1], n[2]}, nil
}

// pruner is one step of pruning. What it finds is removed at its end, so that locks are taken in
// order.
type pruner struct {
	*tx
	dry     bool
	forgets bool // the role may delete entries of audits: it owns the schema
	left    int64
	done    store.Pruned
	found   []int64 // messages with rows
	ranges  []spent
	chains  []cut
}

// spent says how many messages of success ranges that ended up to a moment are to be removed.
type spent struct{ queue, cutoff, members int64 }

// cut says after which entry the audit of a queue is to begin.
type cut struct {
	queue, number int64
	hash          []byte
}

// removeAll removes what was found. Letters are locked, and no other call changes the rest.
func (p *pruner) removeAll() {
	if len(p.found) > 0 {
		p.remove("pruned", p.found)
	}
	for _, s := range p.ranges {
		p.run("remove_old_ranges.sql", s.queue, s.cutoff, s.members)
	}
	for _, c := range p.chains {
		p.run("remove_entries.sql", c.queue, c.number)
	}
	if len(p.chains) > 0 {
		p.run("select from @.chain where queue = any($1) order by queue for update",
			eachOf(p.trail, func(e entry) int64 { return e.queue }))
	}
	for _, c := range p.chains {
		p.run("update @.chain set gone_number = $2, gone_hash = $3 where queue = $1", c.queue, c.number, c.hash)
	}
}

// from continues at a cursor until enough rows were met.
func (p *pruner) from(at pruneCursor) error {
	numbers := append(slices.Sorted(maps.Keys(p.queues)), 0)
	start := slices.IndexFunc(numbers, func(n int64) bool { return n >= at.queue && at.queue != 0 })
	if start < 0 {
		start = len(numbers) - 1
	}
	for _, n := range numbers[start:] {
		for phase := range int64(phases) {
			if n == at.queue && phase < at.phase {
				continue
			}
			after := int64(0)
			if n == at.queue && phase == at.phase {
				after = at.after
			}
			met, err := p.phase(n, phase, after)
			if err != nil {
				return err
			}
			if p.left -= met; p.left == 0 {
				if !p.dry {
					met, after = 0, 0 // what was met is gone
				}
				p.done.Next = fmt.Sprintf("%d.%d.%d", n, phase, after+met)
				return nil
			}
		}
	}
	return nil
}

// phase prunes one phase of one queue and returns how many rows it met.
func (p *pruner) phase(queue, phase, after int64) (int64, error) {
	if queue == 0 {
		switch phase {
		case 0:
			return p.inbox(after)
		case 1:
			return p.documents(after)
		}
		return 0, nil
	}
	messages, letters, audit := p.queues[queue].settings.Kept()
	switch phase {
	case phaseMessages:
		return p.messages(queue, after, messages)
	case phaseRanges:
		return p.rangesOf(queue, after, messages)
	case phaseLetters:
		return p.lettersOf(queue, after, letters)
	}
	return p.audit(queue, after, audit)
}

func (p *pruner) positions(query string, args ...any) (list []int64, ids []nixie.ID, err error) {
	p.read(func(r row) error {
		var pos int64
		var id nixie.ID
		err := r.Scan(&pos, (*idColumn)(&id))
		list, ids = append(list, pos), append(ids, id)
		return err
	}, query, args...)
	return list, ids, p.send()
}

func (p *pruner) messages(queue, after int64, kept time.Duration) (int64, error) {
	if kept == nixie.Forever {
		return 0, nil
	}
	list, _, err := p.positions("old_messages.sql", queue, p.now-int64(kept), after, p.left)
	p.done.Messages += int64(len(list))
	p.found = append(p.found, list...)
	return int64(len(list)), err
}

// rangesOf counts messages of success ranges. removeAll removes them.
func (p *pruner) rangesOf(queue, after int64, kept time.Duration) (met int64, err error) {
	if kept == nixie.Forever {
		return 0, nil
	}
	cutoff, most := p.now-int64(kept), p.left
	if p.dry {
		most += after
	}
	p.number(&met, "count_old_ranges.sql", queue, cutoff, most)
	if err = p.send(); err != nil || met == 0 {
		return 0, err
	}
	if p.dry {
		met = max(met-after, 0)
	} else {
		p.ranges = append(p.ranges, spent{queue, cutoff, met})
	}
	p.done.Messages += met
	return met, nil
}

// lettersOf skips letters that others have locked.
func (p *pruner) lettersOf(queue, after int64, kept time.Duration) (int64, error) {
	if kept == nixie.Forever {
		return 0, nil
	}
	query := "select pos, id from @.letter where queue = $1 and resolved > 0 and resolved <= $2 order by resolved, pos offset $3 limit $4"
	if !p.dry {
		query += " for update skip locked"
	}
	list, ids, err := p.positions(query, queue, p.now-int64(kept), after, p.left)
	p.done.Letters += int64(len(list))
	if err == nil && !p.dry && len(list) > 0 {
		p.run("update @.item set state = 'skipped', at = $2 where state = 'pending' and letter = any($1)", list, p.now)
		p.found = append(p.found, list...)
		for _, id := range ids {
			p.record(queue, lifecycle.System, store.OnPurge, id, store.PrunedLetter(kept))
		}
	}
	return int64(len(list)), err
}

// audit prunes from the oldest entry on. The newest entry always stays, with those of its row.
func (p *pruner) audit(queue, after int64, kept time.Duration) (met int64, err error) {
	if kept == nixie.Forever || !p.forgets {
		return 0, nil
	}
	var newest, entries int64
	var hash []byte
	over := false
	p.read(func(r row) error {
		var number, at, alike int64
		var sum []byte
		if err := r.Scan(&number, &at, &sum, &alike); err != nil {
			return err
		}
		if over = over || at > p.now-int64(kept); !over {
			newest, hash = number, sum
			met, entries = met+1, entries+alike
		}
		return nil
	}, "old_entries.sql", queue, after, p.left)
	if err := p.send(); err != nil {
		return 0, err
	}
	p.done.Entries += entries
	if met == 0 || p.dry {
		return met, nil
	}
	p.chains = append(p.chains, cut{queue, newest, hash})
	p.record(queue, lifecycle.System, store.OnPrune, nixie.ID{}, store.PrunedEntries(newest, kept))
	return met, nil
}

// inbox prunes keys. A dry run has to skip those that it has counted.
func (p *pruner) inbox(after int64) (n int64, err error) {
	cutoff := p.now - int64(store.InboxRetention)
	if p.dry {
		p.number(&n, "select count(*) from (select from @.inbox where at <= $1 offset $2 limit $3) k", cutoff, after, p.left)
	} else {
		var gone int
		gone, err = p.verb().Forget(cutoff, int(p.left))
		n = int64(gone)
	}
	err = cmp.Or(err, p.send())
	p.done.Keys += n
	return n, err
}
