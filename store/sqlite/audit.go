package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// chain appends an entry to the chain of a queue.
func (t *tx) chain(queue int64, e store.AuditEntry) error {
	head, err := t.link(queue)
	if err != nil {
		return err
	}
	q, err := t.queueAt(queue << seqBits)
	if err != nil {
		return err
	}
	e.Queue, e.Number, e.At, e.Before = q.name, head.number+1, lifecycle.Moment(t.now), head.hash
	e.Hash = e.Sum(e.Before)
	*head = chainHead{e.Number, e.Hash}
	row := t.added.add(toAudit)
	row.num(queue).num(e.Number).num(t.now).str(e.Actor).str(string(e.Event)).bytes(e.Subject[:]).str(e.Reason).bytes(e.Hash[:])
	if e.Operation.IsZero() {
		row.null()
	} else {
		row.bytes(e.Operation[:])
	}
	return t.added.end(row)
}

// chainHead holds number and hash of the newest entry of a queue's chain.
type chainHead struct {
	number int64
	hash   nixie.Hash
}

// link returns the newest entry of a queue's chain, or the anchor that stands for pruned entries.
// It returns zero when there is neither. A transaction reads it once.
func (t *tx) link(queue int64) (*chainHead, error) {
	if head := t.chains[queue]; head != nil {
		return head, nil
	}
	head := &chainHead{}
	err := t.each(sqlText("audit_head"), func(row rows) error {
		head.number = row.ColumnInt64(0)
		row.ColumnBytes(1, head.hash[:])
		return nil
	}, queue)
	if t.chains == nil {
		t.chains = map[int64]*chainHead{}
	}
	t.chains[queue] = head
	return head, err
}

// chainOf lists the audit of a queue in the order of its chain.
func (s *Store) chainOf(ctx context.Context, queue string, page store.Page) ([]store.AuditEntry, string, error) {
	after, err := cursorNumber(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := page.Rows()
	var list []store.AuditEntry
	err = s.read(ctx, func(c conn) error {
		return c.each(sqlText("audit_chain"), func(row rows) error {
			list = append(list, scanAudit(row, queue))
			return nil
		}, queue, after, limit)
	})
	if err != nil || len(list) < limit {
		return list, "", err
	}
	return list, strconv.FormatInt(list[len(list)-1].Number, 10), nil
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
	entries := sqlText("audit_entries")
	if filter.People { // they are few: of a queue, too, its other entries are not read
		w.add("a.actor <> '" + lifecycle.System + "'")
		entries = strings.Replace(entries, "from audit a", "from audit a indexed by audit_people", 1)
	}
	oneOf(w, "a.event", filter.Events)
	if len(filter.Subjects) > 0 {
		w.add("a.subject in (?"+strings.Repeat(", ?", len(filter.Subjects)-1)+")", idArgs(filter.Subjects)...)
	}
	order, than := " order by a.at desc, a.queue desc, a.number desc limit ?", "<"
	if filter.Oldest {
		order, than = " order by a.at asc, a.queue asc, a.number asc limit ?", ">"
	}
	if page.Cursor != "" {
		var at, queue, number int64
		if _, err := fmt.Sscanf(page.Cursor, "%d.%d.%d", &at, &queue, &number); err != nil {
			return nil, "", nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not one of ours: start without a cursor", page.Cursor)
		}
		w.add("(a.at, a.queue, a.number) "+than+" (?, ?, ?)", at, queue, number)
	}
	limit := page.Rows()
	var list []store.AuditEntry
	next := ""
	err := s.read(ctx, func(c conn) error {
		return c.each(entries+" "+w.String()+order, func(row rows) error {
			e := scanAudit(row, row.ColumnText(10))
			list = append(list, e)
			next = fmt.Sprintf("%d.%d.%d", row.ColumnInt64(1), row.ColumnInt64(9), e.Number)
			return nil
		}, append(w.args, limit)...)
	})
	if err != nil || len(list) < limit {
		return list, "", err
	}
	return list, next, nil
}

func scanAudit(row rows, queue string) store.AuditEntry {
	e := store.AuditEntry{
		Queue: queue, Number: row.ColumnInt64(0), At: lifecycle.Moment(row.ColumnInt64(1)), Actor: row.ColumnText(2),
		Event: store.Event(row.ColumnText(3)), Subject: columnID(row, 4), Reason: row.ColumnText(5),
	}
	row.ColumnBytes(6, e.Hash[:])
	row.ColumnBytes(7, e.Before[:])
	e.Operation = columnID(row, 8)
	return e
}

func cursorNumber(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		return 0, nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not one of ours: start without a cursor", cursor)
	}
	return n, nil
}
