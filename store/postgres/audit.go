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

// entry is an entry of an audit that is not written yet.
type entry struct {
	entryKind
	subject nixie.ID
	number  int64
	hash    nixie.Hash
}

// entryKind has what many entries of a call have in common.
type entryKind struct {
	queue, at     int64
	actor, reason string
	event         store.Event
	operation     nixie.ID
}

// record adds an entry to the audit of a queue.
func (t *tx) record(queue int64, actor string, on store.Event, subject nixie.ID, reason string) {
	t.trail = append(t.trail, entry{entryKind: entryKind{queue: queue, actor: plain(actor), reason: plain(reason), event: on},
		subject: subject})
}

// flushTrail appends the entries to their chains. It locks the ends of the chains as the last thing
// before the commit, so that no call waits for long.
func (t *tx) flushTrail() error {
	if len(t.trail) == 0 {
		return nil
	}
	type end struct {
		name   string
		number int64
		hash   nixie.Hash
	}
	ends := map[int64]*end{}
	queues := slices.Compact(slices.Sorted(slices.Values(eachOf(t.trail, func(e entry) int64 { return e.queue }))))
	t.read(func(r row) error {
		var queue int64
		e := &end{}
		err := r.Scan(&queue, &e.name, &e.number, (*hashColumn)(&e.hash))
		ends[queue] = e
		return err
	}, "lock_chains.sql", queues)
	if err := t.send(); err != nil {
		return err
	}
	for i := range t.trail {
		e := &t.trail[i]
		at := ends[e.queue]
		if at == nil {
			return nixie.Errorf(nixie.CodeInternal, "queue %d has no audit", e.queue)
		}
		at.number++
		e.at, e.number = t.now, at.number
		link := store.AuditEntry{Queue: at.name, Number: e.number, At: lifecycle.Moment(e.at), Actor: e.actor, Event: e.event,
			Subject: e.subject, Reason: e.reason, Operation: e.operation}
		at.hash = link.Sum(at.hash)
		e.hash = at.hash
	}
	t.insertTrail()
	for _, queue := range queues {
		t.run("update @.chain set number = $2, hash = $3 where queue = $1", queue, ends[queue].number, ends[queue].hash[:])
	}
	t.trail = nil
	return nil
}

// Bounds of a row of entries that are alike: fewer are written better as rows of their own,
// together with others. With more, too much has to be read to show one.
const (
	leastAlike = 16
	mostAlike  = 500
)

// insertTrail writes the entries.
func (t *tx) insertTrail() {
	var single []entry
	for from, to := 0, 0; from < len(t.trail); from = to {
		kind := t.trail[from].entryKind
		for to = from + 1; to < len(t.trail) && to < from+mostAlike && t.trail[to].entryKind == kind; to++ {
		}
		if alike := t.trail[from:to]; len(alike) < leastAlike {
			single = append(single, alike...)
		} else {
			t.insertAlike(alike)
		}
	}
	t.store.bulk.audit.insert(t, single)
}

// insertAlike writes entries that differ only in their subjects as one row.
func (t *tx) insertAlike(list []entry) {
	e, hashes := &list[len(list)-1], make([]byte, 0, len(list)*len(nixie.Hash{}))
	for i := range list {
		hashes = append(hashes, list[i].hash[:]...)
	}
	t.run("insert_alike_entries.sql", e.queue, e.number, e.at, e.actor, string(e.event), e.reason,
		eachOf(list, func(e entry) [16]byte { return e.subject }), hashes, idOrNull(e.operation))
}

func (s *Store) auditWriter() bulkWriter[entry, entryKind] {
	common := []column[entry]{
		of("queue", "int", func(e entry) int64 { return e.queue }), of("at", "bigint", func(e entry) int64 { return e.at }),
		of("actor", "text", func(e entry) string { return e.actor }),
		of("event", "text", func(e entry) string { return string(e.event) }),
		of("reason", "text", func(e entry) string { return e.reason }),
		of("operation", "uuid", func(e entry) *[16]byte { return idOrNull(e.operation) }),
	}
	subjects := of("subjects", "uuid", func(e entry) *[16]byte { return idOrNull(e.subject) })
	subjects.value, subjects.put = "array[u.subjects]", nil
	return makeBulkWriter(s, "audit", func(e entry) entryKind { return e.entryKind }, common,
		of("number", "bigint", func(e entry) int64 { return e.number }), subjects,
		of("hashes", "bytea", func(e entry) []byte { return e.hash[:] }))
}

// chainOf lists the audit of a queue in the order of its chain.
func (s *Store) chainOf(ctx context.Context, queue string, page store.Page) ([]store.AuditEntry, string, error) {
	after, err := cursorNumber(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := page.Rows()
	var list []store.AuditEntry
	err = s.view(ctx, func(t *tx) error {
		t.readEntries(&list, "q.name = $1 and a.last > $2 and a.number > $2 order by a.last, a.number limit $3", queue, after, limit+1)
		return t.send()
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], strconv.FormatInt(list[limit-1].Number, 10), nil
}

// readEntries reads entries, each with the hash of the one before it.
func (t *tx) readEntries(into *[]store.AuditEntry, where string, args ...any) {
	t.read(func(r row) error {
		var e store.AuditEntry
		var at int64
		if err := r.Scan(&e.Queue, &e.Number, &at, &e.Actor, &e.Event, (*idColumn)(&e.Subject), &e.Reason, (*hashColumn)(&e.Hash),
			(*hashColumn)(&e.Before), (*idColumn)(&e.Operation)); err != nil {
			return err
		}
		e.At = lifecycle.Moment(at)
		*into = append(*into, e)
		return nil
	}, fill("read_entries.sql", "where", where), args...)
}

// Audit implements store.AuditLog.
func (s *Store) Audit(ctx context.Context, filter store.AuditFilter, page store.Page) ([]store.AuditEntry, string, error) {
	if filter.Chain != "" {
		return s.chainOf(ctx, filter.Chain, page)
	}
	w := &where{}
	oneOf(w, "q.name", filter.Queues)
	w.times("a.at", nixie.Times{After: filter.Since, Before: filter.Until})
	if filter.Actor != "" {
		w.add("a.actor = ?", filter.Actor)
	}
	if filter.People {
		w.add("a.actor <> '" + lifecycle.System + "'") // as the index of these has it
	}
	oneOf(w, "a.event", filter.Events)
	if len(filter.Subjects) > 0 {
		w.add("coalesce(a.subject, '00000000-0000-0000-0000-000000000000') = any(?)", uuids(filter.Subjects))
		if !slices.Contains(filter.Subjects, nixie.ID{}) { // which is null in a row, and in no index
			w.add("a.among && ?", uuids(filter.Subjects))
		}
	}
	direction, beyond := "desc", "<"
	if filter.Oldest {
		direction, beyond = "asc", ">"
	}
	if page.Cursor != "" {
		at, number, queue, err := parseTrail(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		w.add("(a.at, q.name collate \"C\", a.number) "+beyond+" (?, ?, ?)", at, queue, number)
	}
	limit := page.Rows()
	at := "a.at"
	if len(filter.Subjects) > 0 || len(filter.Queues) > 0 && len(filter.Events) > 0 {
		at = "a.at + 0" // these are few: another index finds them, not that of times
	}
	where := fmt.Sprintf("%s order by %s %s, q.name collate \"C\" %[3]s, a.number %[3]s limit %d", w, at, direction, limit+1)
	var list []store.AuditEntry
	err := s.view(ctx, func(t *tx) error {
		t.readEntries(&list, where, w.args...)
		return t.send()
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	last := &list[limit-1]
	return list[:limit], fmt.Sprintf("%d.%d.%s", last.At.UnixNano(), last.Number, last.Queue), nil
}

// parseTrail reads a cursor of the audit of all queues.
func parseTrail(cursor string) (at, number int64, queue string, err error) {
	parts := strings.SplitN(cursor, ".", 3)
	if len(parts) < 3 {
		return 0, 0, "", store.BadCursor(cursor)
	}
	if at, err = strconv.ParseInt(parts[0], 10, 64); err == nil {
		number, err = strconv.ParseInt(parts[1], 10, 64)
	}
	if err != nil {
		return 0, 0, "", store.BadCursor(cursor)
	}
	return at, number, parts[2], nil
}
