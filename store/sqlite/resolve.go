package sqlite

import (
	"context"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Resolve implements store.DeadLetters.
func (s *Store) Resolve(ctx context.Context, resolutions []store.Resolution) []error {
	errs := make([]error, len(resolutions))
	if len(resolutions) == 0 {
		return errs
	}
	if err := store.CheckResolutions(resolutions); err != nil {
		return all(errs, err)
	}
	refused := make([]error, len(resolutions))
	for i := range resolutions {
		refused[i] = resolutions[i].Check()
	}
	err := s.write(ctx, 0, func(t *tx) error {
		copy(errs, refused)
		done, err := t.confirmMany(resolutions, errs)
		if err != nil {
			return err
		}
		for i := range resolutions {
			r := &resolutions[i]
			if errs[i] != nil {
				continue
			}
			if l := done[r.Letter]; l != nil {
				err = t.auditResolved(l.queue, r)
			} else {
				err = t.resolveItem(r)
			}
			if err != nil && !answers(err) && !isDamage(err, r) {
				return err
			}
			errs[i] = err
		}
		return nil
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// isDamage reports whether an operation met a letter that cannot be read. Its item has failed and
// does not hold up the others. Every such error comes before the first write to the letter.
func isDamage(err error, r *store.Resolution) bool {
	var ours *nixie.Error // CodeOf returns internal for a driver's error too
	return !r.Operation.IsZero() && errors.As(err, &ours) && ours.Code == nixie.CodeInternal
}

// resolveItem resolves one letter and marks the item of its operation in the same transaction, so
// that a repeat finds it done.
func (t *tx) resolveItem(r *store.Resolution) error {
	if r.Operation.IsZero() {
		return t.resolve(r, 0)
	}
	var operation, letter, planned int64 // a purge removes the letter, so its position is read before
	var state lifecycle.Item
	var event store.Event
	if err := t.each(sqlText("item_of"), func(row rows) error {
		operation, state, letter = row.ColumnInt64(0), lifecycle.Item(row.ColumnText(1)), row.ColumnInt64(2)
		planned, event = row.ColumnInt64(3), store.Event(row.ColumnText(4))
		return nil
	}, r.Operation, r.Letter); err != nil {
		return err
	}
	if err := state.Open(r, event); err != nil {
		return err
	}
	answer := t.resolve(r, planned)
	text := ""
	if answer != nil {
		if !answers(answer) && !isDamage(answer, r) {
			return answer
		}
		text = answer.Error()
	}
	if err := t.run(sqlText("decide_item"), string(lifecycle.ItemOf(r, answer)), text, r.Group, t.now, operation, letter); err != nil {
		return err
	}
	return answer
}

// resolve applies an event to a letter. The table of moves must allow it, and the letter must have
// the revision at which it was planned, unless that is 0.
func (t *tx) resolve(r *store.Resolution, planned int64) error {
	l, err := t.letter(sqlText("letter_with_id"), r.Letter)
	if err != nil {
		return err
	}
	if l == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no letter %s", r.Letter)
	}
	m, err := t.allow(l, r, planned)
	if err != nil {
		return err
	}
	if r.Event == store.OnPurge {
		return t.purge(l, r)
	}
	was := *l
	if was.Status == nixie.StatusRedriving && r.Event == store.OnConfirm {
		return t.confirmOnItsWay(l, r)
	}
	appends, err := l.Resolve(&m.Message, r, m.stream != "" && m.q.settings.Ordered(), t.now)
	if err != nil {
		return nixie.Errorf(nixie.CodeInternal, "letter %s: %w: run nixie verify", l.ID, err)
	}
	if was.InStream && !l.InStream {
		if err := t.leaveStream(&was); err != nil {
			return err
		}
	}
	switch r.Event {
	case store.OnNote:
		return t.annotate(l, r)
	case store.OnRedrive:
		if err = t.redrive(l, m, appends); err == nil {
			err = t.prolong(l, m.expires, r)
		}
		if err == nil {
			err = t.edit(l, m.edited, r)
		}
	case store.OnDiscard:
		err = t.freeKeyOf(l.pos, lifecycle.Discarded)
	case store.OnConfirm:
		err = t.handOver(l, m)
	case store.OnRestore:
		err = t.restore(l, m)
	case store.OnUnhold:
		if r.Reviewed {
			err = t.run("update letter set redrivable = ?, needs_review = ?, rule = ?, rule_sum = ? where pos = ?", l.Redrivable,
				l.NeedsReview, l.Rule, sumOf(l.Rule), l.pos)
		}
	}
	if err != nil {
		return err
	}
	return t.moved(&was, l, r)
}

// moved writes how a letter was resolved.
func (t *tx) moved(was, l *letterRow, r *store.Resolution) (err error) {
	if l.facet, err = t.moveFacet(was, l.Status, r.Reviewed); err != nil {
		return err
	}
	if err := t.writeMove(l); err != nil {
		return err
	}
	return t.auditResolved(l.queue, r)
}

// restore undoes a discard.
func (t *tx) restore(l *letterRow, m *deadMessage) error {
	if lifecycle.KeepsDead(m.q.settings.DedupeScope) {
		if err := t.retakeKey(l, m.key); err != nil {
			return err
		}
	}
	if !l.InStream {
		return nil
	}
	return t.rejoin(m.q, l, m.stream)
}

func idOrNull(id nixie.ID) any {
	if id.IsZero() {
		return nil
	}
	return id
}

// redrive queues a dead message again, as the next generation of the same message. If later
// messages of its stream may have passed it, it goes to the end of the stream.
func (t *tx) redrive(l *letterRow, m *deadMessage, appends bool) error {
	q, p := m.q, &m.pendingRow
	if err := t.retakeKey(l, m.key); err != nil {
		return err
	}
	if err := t.dissolve(l.pos); err != nil {
		return err
	}
	if n, err := t.change("delete from log where pos = ? and state = ?", l.pos, lifecycle.Dead); err != nil || n != 1 {
		return orDefect(err, "log row of letter %s is gone: run nixie verify", l.ID)
	}
	if err := t.run("update message set own = 1 where pos = ?", l.pos); err != nil {
		return err
	}
	if err := t.each("select reason from failure where pos = +? order by ordinal desc limit 1", func(row rows) error {
		p.reason = row.ColumnText(0)
		return nil
	}, l.pos); err != nil {
		return err
	}
	q.ended[lifecycle.Dead]--
	q.dirty = true
	if appends {
		p.Rank = t.appendRank(q)
	}
	if err := t.join(q, p, m.stream, p.Rank); err != nil {
		return err
	}
	if err := t.insertPending(p); err != nil {
		return err
	}
	t.wake(q.name)
	return nil
}

func orDefect(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return nixie.Errorf(nixie.CodeInternal, format, args...)
}

// retakeKey takes the dedupe key for a message again, if its scope had freed it and no other
// message holds it.
func (t *tx) retakeKey(l *letterRow, key string) error {
	if key == "" {
		return nil
	}
	return t.run("insert into dedupe (queue, key, pos) values (?, ?, ?) on conflict do nothing", l.queue, key, l.pos)
}

// freeKeyOf frees the key of a dead message that ended when its letter was resolved.
func (t *tx) freeKeyOf(pos int64, state int) error {
	q, err := t.queueAt(pos)
	if err != nil {
		return err
	}
	key, err := t.dedupeKey(pos)
	if err != nil {
		return err
	}
	return t.freeKey(q, pos, key, state)
}
