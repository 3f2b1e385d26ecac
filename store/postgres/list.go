package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// maxPageSize bounds the bytes of bodies and histories on a page, however few rows it has.
const maxPageSize = 16 << 20

// current reads shown_columns, and more columns behind them. It leaves out what cannot be read, and
// names it.
func current(r row, m *nixie.Message, more ...any) (pos int64, damage []string, err error) {
	var headers, origin, steps, patience, owner string
	var enqueued, expires, due, until, claimed, received, ended, redriven int64
	var state int
	into := append([]any{&pos, (*idColumn)(&m.ID), &m.Queue, &m.Type, &m.Key, &m.Stream, &m.DedupeKey, &m.Priority, (*hashColumn)(&m.Hash),
		&headers, &origin,
		&enqueued, &expires, &state, &due, &m.Attempts, &m.Deliveries, &m.Crashes, &m.Generation, &m.Redrives,
		&owner, &until, &claimed, &received, &steps, &ended, &m.MayPass, &m.OrderGap, &m.LastReason, &redriven, &patience}, more...)
	if err := r.Scan(into...); err != nil {
		return 0, nil, err
	}
	m.EnqueuedAt, m.ExpiresAt, m.FirstReceivedAt, m.EndedAt = lifecycle.Moment(enqueued), lifecycle.Moment(expires),
		lifecycle.Moment(received), lifecycle.Moment(ended)
	m.RedrivenAt = lifecycle.Moment(redriven)
	damage = readTexts(m, headers, origin, steps, patience)
	if m.State = lifecycle.State(state); m.State == "" {
		return pos, append(damage, fmt.Sprintf("state %d is not one of ours", state)), nil
	}
	switch m.State {
	case nixie.Queued:
		m.NotBefore = lifecycle.Moment(due)
	case nixie.Leased:
		m.LeaseOwner, m.LeasedAt, m.LeaseExpiresAt = owner, lifecycle.Moment(claimed), lifecycle.Moment(until)
	}
	return pos, damage, nil
}

// tell adds body and history to a message.
func (s *story) tell(m *nixie.Message, history *[]nixie.Failure, dropped *int, damage *[]string) {
	m.Body, *history, *dropped = s.body, s.history, s.dropped
	if nixie.HashBody(m.Body) != m.Hash {
		*damage = append(*damage, bodyDamage)
	}
	*damage = append(*damage, s.damage...)
}

// size returns how many bytes a story has.
func (s *story) size() int {
	n := len(s.body)
	for i := range s.history {
		n += len(s.history[i].Text) + len(s.history[i].Stack)
		for _, a := range s.history[i].Attachments {
			n += len(a.Data)
		}
	}
	return n
}

// Messages implements store.Overview.
func (s *Store) Messages(ctx context.Context, filter nixie.Filter, page store.Page) ([]store.Record, string, error) {
	limit := page.Rows()
	var list []store.Record
	var positions []int64
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		w := messageWhere(&filter, t.now)
		terms := len(w.terms)
		if err := t.few(w, &filter); err != nil {
			return err
		}
		if page.Newest && len(w.terms) == terms {
			w.newest(&filter)
		}
		if page.Cursor != "" {
			before, err := cursorNumber(page.Cursor)
			if err != nil {
				return err
			}
			w.add("c.pos < ?", before)
		}
		t.read(func(r row) error {
			var m store.Record
			pos, damage, err := current(r, &m.Message, &m.LastFailure)
			m.Damage = damage
			list, positions = append(list, m), append(positions, pos)
			return err
		}, fill("list_messages.sql", "where", w.String(), "limit", strconv.Itoa(limit+1)), w.args...)
		if err := t.send(); err != nil || !page.Whole {
			return err
		}
		stories, err := t.readStories(positions, true)
		for i, size := 0, 0; err == nil && i < len(list); i++ {
			of := stories[positions[i]]
			of.tell(&list[i].Message, &list[i].History, &list[i].HistoryDropped, &list[i].Damage)
			if size += of.size(); size >= maxPageSize {
				limit = min(limit, i+1)
			}
		}
		return err
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], strconv.FormatInt(positions[limit-1], 10), nil
}

// few adds a condition on the positions of messages when a filter asks only for some that have not
// ended: leased ones, queued ones that had an attempt, and those in streams of ordered queues. All
// others may be many more.
func (t *tx) few(w *where, f *nixie.Filter) error {
	onWay := func(s nixie.State) bool { return s == nixie.Queued || s == nixie.Leased }
	switch {
	case slices.Equal(f.States, []nixie.State{nixie.Leased}):
		w.add("c.pos = any(array(select pos from @.pending where until > 0 union all select pos from @.member))")
	case slices.Equal(f.States, []nixie.State{nixie.Queued}) && f.Attempts.Min != nil && *f.Attempts.Min > 0:
		w.add("c.pos = any(array(select pos from @.pending where attempts >= ?))", *f.Attempts.Min)
	case len(f.Queues) > 0 && len(f.Streams) > 0 && !slices.Contains(f.Streams, "") &&
		len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s nixie.State) bool { return !onWay(s) }):
		t.readQueues("name = any($1)", f.Queues)
		if err := t.send(); err != nil {
			return err
		}
		for _, q := range t.named {
			if !q.settings.Ordered() {
				return nil // it keeps no list of its streams
			}
		}
		w.add("c.pos = any(array("+asked("unfinished_in_streams")+"))", f.Streams)
	}
	return nil
}

// Letters implements store.DeadLetters.
func (s *Store) Letters(ctx context.Context, filter nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	limit := page.Rows()
	var list []nixie.Letter
	var positions []int64
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		t.run("for_pages.sql")
		rest := filter
		rest.IDs, rest.Endings = nil, nil // they are the parts of the list
		w := letterWhere(&rest, t.now)
		if page.Cursor != "" {
			after, err := cursorNumbers(page.Cursor, 2)
			if err != nil {
				return err
			}
			w.add("(l.died, l.pos) < (?, ?)", after[0], after[1])
		}
		parts, letters, part, err := t.partsOf(w, &filter, limit)
		if err != nil {
			return err
		}
		t.read(func(r row) error {
			l, pos, err := shownLetter(r)
			list, positions = append(list, l), append(positions, pos)
			return err
		}, fill("list_letters.sql", "parts", parts, "letters", letters, "part", part, "where", w.String(), "limit",
			strconv.Itoa(limit+1)), w.args...)
		if err := t.send(); err != nil || !page.Whole && !page.Bodies {
			return err
		}
		if page.Whole {
			t.readNotes(list, positions)
			t.readOriginals(list, positions)
		}
		stories, err := t.readStories(positions, page.Whole)
		for i, size := 0, 0; err == nil && i < len(list); i++ {
			l, of := &list[i], stories[positions[i]]
			of.tell(&l.Message, &l.History, &l.HistoryDropped, &l.Damage)
			if n := len(l.History); n > 0 {
				l.Artifacts = l.History[n-1].Attachments
			}
			if size += of.size(); size >= maxPageSize {
				limit = min(limit, i+1)
			}
		}
		return err
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], fmt.Sprintf("%d.%d", list[limit-1].DiedAt.UnixNano(), positions[limit-1]), nil
}

// partsOf returns the parts in which letters are looked for, each by an index that has them ready
// or the latest first, the tables to read, and what belongs to a part. Letters with given IDs are
// read one by one: with statistics of a smaller table the server would read all, latest first.
func (t *tx) partsOf(w *where, f *nixie.Filter, limit int) (parts, letters, part string, err error) {
	letters = w.letters()
	if len(f.IDs)+len(f.Endings) > 0 {
		t.run("select set_config('enable_seqscan', 'off', true)")
		one := strings.Replace(letters, "@.letter l", "(select * from @.letter where pos = k.pos offset 0) l", 1)
		return "(select distinct pos from unnest(" + w.named(f) + ") n (pos)) k", one, "true", nil
	}
	facets, err := t.fewFacets(f, limit)
	if err != nil || facets == nil {
		return "@.queue q", letters, "l.queue = q.n", err
	}
	return w.with("unnest(?::bigint[]) k (facet)", facets), letters, "l.facet = k.facet", nil
}

// mostOfFacets limits the letters of facets that a page reads. A page that would read more reads
// the letters of queues, until it has enough that match.
const mostOfFacets = 20_000

// fewFacets returns the facets that a filter chooses by their properties, if a page with a number
// of letters of each is short enough, else nil.
func (t *tx) fewFacets(f *nixie.Filter, page int) ([]int64, error) {
	w := facetWhere(f, t.now)
	if len(w.terms) == 0 {
		return nil, nil
	}
	most, facets := max(1, mostOfFacets/(page+1)), []int64{}
	t.read(func(r row) error {
		var facet int64
		err := r.Scan(&facet)
		facets = append(facets, facet)
		return err
	}, fmt.Sprintf("select facet from @.death l where whole and %s group by 1 limit %d", w, most+1), w.args...)
	if err := t.send(); err != nil || len(facets) > most {
		return nil, err
	}
	return facets, nil
}

// readNotes adds the notes of letters.
func (t *tx) readNotes(list []nixie.Letter, positions []int64) {
	byNumber := map[int64]*nixie.Letter{}
	for i := range list {
		byNumber[positions[i]] = &list[i]
	}
	t.read(func(r row) error {
		var n, at int64
		var note nixie.Note
		if err := r.Scan(&n, &at, &note.By, &note.Text); err != nil {
			return err
		}
		note.At = lifecycle.Moment(at)
		byNumber[n].Notes = append(byNumber[n].Notes, note)
		return nil
	}, "select letter, at, by, text from @.note where letter = any($1) order by letter, ordinal", positions)
}

func shownLetter(r row) (l nixie.Letter, pos int64, err error) {
	var first, last, died, resolved int64
	pos, l.Damage, err = current(r, &l.Message, (*idColumn)(&l.ID), &l.Status, &l.Cause, &l.Class, &l.Reason, &l.Signature, &l.Fingerprint,
		&l.Redrivable, &l.NeedsReview, &l.Rule,
		&first, &last, &died, &resolved, (*idColumn)(&l.Operation), &l.Note, &l.Revision, &l.Message.LastFailure, &l.KeyTaken)
	l.FirstFailedAt, l.LastFailedAt, l.DiedAt, l.ResolvedAt = lifecycle.Moment(first), lifecycle.Moment(last), lifecycle.Moment(died),
		lifecycle.Moment(resolved)
	return l, pos, err
}

// time reads the clock at once.
func (t *tx) time() error {
	t.clock()
	return t.send()
}
