package postgres

import (
	"context"
	"slices"

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
	err := s.write(ctx, func(t *tx) error {
		r := resolving{tx: t, items: map[item]lifecycle.Item{}, planned: map[item]int64{}, groups: map[item]string{}}
		if err := r.hold(resolutions); err != nil {
			return err
		}
		for i := range resolutions {
			errs[i] = r.resolve(&resolutions[i])
		}
		r.flushItems()
		return nil
	})
	if err != nil {
		return all(errs, err)
	}
	s.changed(ctx, len(resolutions))
	return errs
}

// resolving is one call of Resolve.
type resolving struct {
	*tx
	items      map[item]lifecycle.Item // state, as read and as decided
	planned    map[item]int64          // revisions of the letters, where only those will do
	operations map[nixie.ID]store.Event
	decided    []item
	groups     map[item]string          // that the resolutions of the items name
	headers    map[int64][]nixie.Header // of messages, if any is to be edited
	damaged    map[int64]error          // why headers cannot be read
	bodyAt     map[int64]string         // of messages without their bodies, see [lifecycle.Facts]
	purged     []*letterRow
	purgedBy   map[nixie.ID]nixie.ID  // letter to operation
	next       map[streamKey]*message // the first unclaimed message of each ordered path, for restored letters
}

// hold locks the letters, with all that belongs to them, and reads them. It opens the streams that
// their messages may be appended to.
func (r *resolving) hold(resolutions []store.Resolution) error {
	var ids, operations []nixie.ID
	for i := range resolutions {
		ids = append(ids, resolutions[i].Letter)
		if op := resolutions[i].Operation; !op.IsZero() {
			operations = append(operations, op)
		}
	}
	list := uuids(ids)
	r.lockQueues("n in (select queue from @.letter where pos"+which().letters+")", list)
	restores := slices.ContainsFunc(resolutions, func(by store.Resolution) bool { return by.Event == store.OnRestore })
	if restores {
		r.lock(&r.locked.cursors, "lock_cursors_of_letters.sql", list)
	}
	// Streams are made for messages that may be appended to them.
	r.openStreamsOf(texts()["streams_to_resolve"], list)
	r.lock(&r.locked.pending, "select pos from @.pending where pos"+which().letters+" order by pos for update", list)
	r.lock(&r.locked.letters, "select pos from @.letter where pos"+which().letters+" order by pos for update", list)
	r.openKeys("select queue, dedupe from @.message where pos"+which().letters+" and dedupe is not null", list)
	r.clock()
	r.readMessages("c.pos"+which().letters, list)
	if restores {
		r.readMessages("c.pos = any(array("+texts()["firsts_without_row"]+"))", list)
	}
	r.readLetters("pos"+which().letters, list)
	if len(operations) > 0 {
		r.readItems(operations, list)
	}
	if slices.ContainsFunc(resolutions, func(by store.Resolution) bool { return by.Edit != nil }) {
		r.readHeaders(list)
	}
	r.bodyAt = map[int64]string{}
	r.read(func(row row) error {
		var pos int64
		var origin string
		err := row.Scan(&pos, &origin)
		r.bodyAt[pos] = store.BodyAt(origin)
		return err
	}, `select pos, origin from @.message where origin like '%"body_at"%' and pos`+which().letters, list)
	r.draw(len(resolutions))
	if err := r.send(); err != nil {
		return err
	}
	return r.checkLocks()
}

// resolve applies one resolution. It answers before it changes anything.
func (r *resolving) resolve(by *store.Resolution) error {
	if err := by.Check(); err != nil {
		return err
	}
	l := r.letters[by.Letter]
	if l == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no letter %s", by.Letter)
	}
	it, err := r.item(by)
	if err != nil {
		return err
	}
	if err = r.allow(l, by); err == nil {
		err = r.apply(l, by)
	}
	if it != nil {
		r.items[*it] = lifecycle.ItemOf(by, err)
		r.decided = append(r.decided, *it)
		r.groups[*it] = by.Group
	}
	return err
}

// allow returns why a resolution cannot be applied; it changes nothing.
func (r *resolving) allow(l *letterRow, by *store.Resolution) error {
	m := l.m
	if m == nil {
		return nixie.Errorf(nixie.CodeInternal, "letter %s has no message: run nixie verify", l.ID)
	}
	taken := ""
	if lifecycle.NeedsKey(by.Event, m.q.settings.DedupeScope) && r.free(m.queue, m) != nil {
		taken = m.dedupe
	}
	if by.Edit != nil && r.damaged[m.pos] != nil {
		return r.damaged[m.pos]
	}
	return lifecycle.Refuse(lifecycle.Facts{
		ID: l.ID, Status: l.Status, Dead: m.State == lifecycle.Dead, Redrivable: l.Redrivable, NeedsReview: l.NeedsReview,
		Redrives: m.Redrives,
		Notes:    l.notes, Revision: l.Revision, Planned: r.planned[item{by.Operation, by.Letter}], TakenKey: taken,
		Cause: l.Cause, Expired: lifecycle.Past(m.expires, r.now),
		BodyAt: r.bodyAt[m.pos],
	}, by)
}

// apply does what allow found possible.
func (r *resolving) apply(l *letterRow, by *store.Resolution) error {
	m := l.m
	if by.Event == store.OnPurge {
		r.purge(l, by)
		return nil
	}
	was, operation := l.Status, l.Operation
	appends, err := l.Resolve(&m.Message, by, m.stream != "" && m.q.settings.Ordered(), r.now)
	if err != nil {
		return err
	}
	r.touchLetter(l)
	switch by.Event {
	case store.OnNote:
		r.run("add_note.sql", l.pos, r.now, plain(by.Actor), plain(by.Reason))
		l.notes++
	case store.OnRedrive:
		if m.note = ""; appends {
			m.Rank = r.nextPosition()
		}
		if !m.Ordered {
			r.wake(m.q.name)
		}
		r.take(m)
		r.touch(m)
		r.edit(l, by)
	case store.OnConfirm:
		if was == nixie.StatusRedriving {
			r.ends(l.pos, lifecycle.Ending{Operation: operation, On: lifecycle.Overtaken(by)})
		}
		r.touch(m)
		if err := r.end(m, lifecycle.Success()); err != nil {
			return err
		}
	case store.OnDiscard:
		r.release(m, true)
	case store.OnRestore:
		if l.InStream {
			r.leaveOrderedPath(m)
		}
		if lifecycle.KeepsDead(m.q.settings.DedupeScope) {
			r.take(m)
		}
	}
	r.recordResolved(l.queue, by)
	return nil
}

// leaveOrderedPath gives the next message of a dead message's stream a row: a claim by the ordered
// path could not see that it passes the dead one.
func (r *resolving) leaveOrderedPath(dead *message) {
	if r.next == nil {
		r.next = map[streamKey]*message{}
		for _, m := range r.rows {
			if m.in == onOrderedPath {
				r.next[streamKey{m.queue, m.stream}] = m
			}
		}
	}
	if m := r.next[streamKey{dead.queue, dead.stream}]; m != nil {
		r.touch(m)
	}
}
