package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

const currentColumns = `c.pos, c.id, c.queue_name, c.type, c.key, c.stream, c.dedupe, c.priority, c.hash, c.headers, c.origin, c.enqueued, c.expires,
	c.state, c.due, c.has_row, c.attempts, c.deliveries, c.crashes, c.generation, c.redrives, c.owner, c.until, c.received, c.steps, c.ended, c.own, c.may_pass, c.gap, c.claimed`

const currentWidth = 30

// scanCurrent reads currentColumns. What cannot be read of them is left out and
// named.
func (s *Store) scanCurrent(c conn, row rows, m *nixie.Message) (damage []string, err error) {
	m.ID, m.Queue = columnID(row, 1), row.ColumnText(2)
	m.Type, m.Key, m.Stream, m.DedupeKey = row.ColumnText(3), row.ColumnText(4), row.ColumnText(5), row.ColumnText(6)
	m.Priority = row.ColumnInt(7)
	row.ColumnBytes(8, m.Hash[:])
	m.EnqueuedAt, m.ExpiresAt = moment(row.ColumnInt64(11)), moment(row.ColumnInt64(12))
	if n := row.ColumnInt(13); n >= 0 && n < len(states) {
		m.State = states[n]
	} else {
		damage = append(damage, fmt.Sprintf("state %d is not one of ours", n))
	}
	m.MayPass, m.OrderGap = row.ColumnBool(27), row.ColumnBool(28)
	m.Attempts, m.Deliveries, m.Crashes = row.ColumnInt(16), row.ColumnInt(17), row.ColumnInt(18)
	m.Generation, m.Redrives = row.ColumnInt(19), row.ColumnInt(20)
	m.FirstReceivedAt, m.EndedAt = moment(row.ColumnInt64(23)), moment(row.ColumnInt64(25))
	if m.State == nixie.Queued {
		m.NotBefore = moment(row.ColumnInt64(14))
	}
	for _, j := range [...]struct {
		col  int
		what string
		into any
	}{{9, "headers", &m.Headers}, {10, "origin", &m.Origin}, {24, "steps", &m.Steps}} {
		if err := fromJSON(row.ColumnText(j.col), j.into); err != nil {
			damage = append(damage, j.what+": "+err.Error())
		}
	}
	if m.State != nixie.Leased {
		return damage, nil
	}
	owner, until, claimed := row.ColumnInt64(21), row.ColumnInt64(22), row.ColumnInt64(29)
	if !row.ColumnBool(15) { // a member of a batch
		if err := c.each("select owner, until, claimed from batch where first <= ?1 and last >= ?1", func(b rows) error {
			owner, until, claimed = b.ColumnInt64(0), b.ColumnInt64(1), b.ColumnInt64(2)
			m.FirstReceivedAt = moment(claimed)
			return nil
		}, row.ColumnInt64(0)); err != nil {
			return damage, err
		}
	}
	m.LeasedAt, m.LeaseExpiresAt = moment(claimed), moment(until)
	return damage, c.each("select name from owner where n = ?", func(o rows) error {
		m.LeaseOwner = o.ColumnText(0)
		return nil
	}, owner)
}

// Letters implements store.DeadLetters.
func (s *Store) Letters(ctx context.Context, filter nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	w := letterWhere(&filter, s.Now())
	if page.Cursor != "" {
		died, n, err := splitCursor(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		w.add("(l.died, l.n) < (?, ?)", died, n)
	}
	limit := pageLimit(page)
	var list []nixie.Letter
	var numbers []int64
	size := 0
	err := s.read(ctx, func(c conn) error {
		return chosen(c.each("select "+currentColumns+`, l.n, l.id, l.status, l.cause, l.class, l.reason, l.signature, l.fingerprint, l.redrivable, l.needs_review, l.rule,
			l.first_failed, l.last_failed, l.died, l.resolved, l.operation, l.note, l.revision, l.text, (select reason from failure f where f.pos = l.pos order by f.ordinal desc limit 1)
			from letter l join current c on c.pos = l.pos where `+w.String()+" order by l.died desc, l.n desc limit ?", func(row rows) error {
			l, err := s.scanLetter(c, row, page.Whole)
			list, numbers = append(list, l), append(numbers, row.ColumnInt64(currentWidth))
			return fullPage(err, &size, &l.Message, l.History)
		}, append(w.args, limit)...))
	})
	if err != nil || len(list) < limit && size < maxPageSize {
		return list, "", err
	}
	end := len(list) - 1
	return list, fmt.Sprintf("%d.%d", nanos(list[end].DiedAt), numbers[end]), nil
}

// maxPageSize is at how many bytes of bodies and histories a page ends, however
// few rows it has.
const maxPageSize = 16 << 20

// fullPage ends a page that is large enough.
func fullPage(err error, size *int, m *nixie.Message, history []nixie.Failure) error {
	*size += len(m.Body)
	for i := range history {
		*size += len(history[i].Text) + len(history[i].Stack)
		for _, a := range history[i].Attachments {
			*size += len(a.Data)
		}
	}
	if err == nil && *size >= maxPageSize {
		return errEnough
	}
	return err
}

func splitCursor(cursor string) (died, n int64, err error) {
	left, right, _ := strings.Cut(cursor, ".")
	if died, err = cursorNumber(left); err == nil {
		n, err = strconv.ParseInt(right, 10, 64)
	}
	if err != nil {
		err = nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not one of ours: start without a cursor", cursor)
	}
	return died, n, err
}

func (s *Store) scanLetter(c conn, row rows, whole bool) (nixie.Letter, error) {
	at := func(i int) int { return currentWidth + i }
	l := nixie.Letter{
		ID: columnID(row, at(1)), Status: nixie.Status(row.ColumnText(at(2))), Cause: nixie.Cause(row.ColumnText(at(3))),
		Class: nixie.Class(row.ColumnText(at(4))), Reason: nixie.Reason(row.ColumnText(at(5))),
		Signature: row.ColumnText(at(6)), Fingerprint: row.ColumnText(at(7)),
		Redrivable: row.ColumnBool(at(8)), NeedsReview: row.ColumnBool(at(9)), Rule: row.ColumnText(at(10)),
		FirstFailedAt: moment(row.ColumnInt64(at(11))), LastFailedAt: moment(row.ColumnInt64(at(12))),
		DiedAt: moment(row.ColumnInt64(at(13))), ResolvedAt: moment(row.ColumnInt64(at(14))),
		Operation: columnID(row, at(15)), Note: row.ColumnText(at(16)), Revision: row.ColumnInt64(at(17)),
	}
	var err error
	if l.Damage, err = s.scanCurrent(c, row, &l.Message); err != nil {
		return l, err
	}
	l.Message.LastFailure, l.Message.LastReason = row.ColumnText(at(18)), nixie.Reason(row.ColumnText(at(19)))
	if !whole {
		return l, nil
	}
	l.History, l.HistoryDropped, err = story(c, row.ColumnInt64(0), &l.Message, &l.Damage)
	if err != nil {
		return l, err
	}
	if n := len(l.History); n > 0 {
		l.Artifacts = l.History[n-1].Attachments
	}
	l.Notes, err = notes(c, row.ColumnInt64(at(0)))
	return l, err
}

const bodyDamage = "body: it is not the one that was accepted, its hash differs"

// story reads what is kept of a message beside its row: the body, checked, and
// the history.
func story(c conn, pos int64, m *nixie.Message, damage *[]string) (list []nixie.Failure, dropped int, err error) {
	if m.Body, err = body(c, pos); err != nil {
		return nil, 0, err
	}
	if nixie.HashBody(m.Body) != m.Hash {
		*damage = append(*damage, bodyDamage)
	}
	return history(c, pos, damage)
}

func body(c conn, pos int64) ([]byte, error) {
	var b []byte
	err := c.each("select body from message where pos = ?", func(row rows) error {
		b = columnBytes(row, 0)
		return nil
	}, pos)
	return b, err
}

// groupings names what letters are grouped by: the key and the label.
var groupings = map[nixie.GroupBy][2]string{
	nixie.ByFingerprint: {"l.fingerprint", "max(l.signature)"},
	nixie.ByReason:      {"l.reason", "''"},
	nixie.ByClass:       {"l.class", "''"},
	nixie.ByType:        {"coalesce(c.type, '')", "''"},
	nixie.ByQueue:       {"c.queue_name", "''"},
	nixie.ByStatus:      {"l.status", "''"},
	nixie.ByHour:        {"strftime('%Y-%m-%dT%H', l.died / 1000000000, 'unixepoch')", "''"},
	nixie.ByRedrivable:  {"case l.redrivable when 1 then 'yes' else 'no' end", "''"},
	nixie.ByAttempts:    {"cast(c.attempts as text)", "''"},
	nixie.ByReview:      {"case l.needs_review when 1 then 'yes' else 'no' end", "''"},
}

// examples is how many letters of a group are named.
const examples = 3

// Groups implements store.DeadLetters.
func (s *Store) Groups(ctx context.Context, filter nixie.Filter, by nixie.GroupBy) ([]nixie.Group, error) {
	g, known := groupings[by]
	if !known {
		return nil, nixie.Errorf(nixie.CodeInvalid, "cannot group by %q: give one of fingerprint, reason, class, type, queue, status, hour, redrivable, needs_review, attempts", by)
	}
	w := letterWhere(&filter, s.Now())
	var list []nixie.Group
	err := s.read(ctx, func(c conn) error {
		from := " from letter l join current c on c.pos = l.pos where " + w.String()
		if err := c.each("select "+g[0]+" as k, "+g[1]+", count(*), min(l.died), max(l.died), min(l.reason), max(l.reason)"+from+" group by k order by count(*) desc, k", func(row rows) error {
			group := nixie.Group{Key: row.ColumnText(0), Label: row.ColumnText(1), Count: row.ColumnInt64(2), FirstAt: moment(row.ColumnInt64(3)), LastAt: moment(row.ColumnInt64(4))}
			if row.ColumnText(5) == row.ColumnText(6) {
				group.Reason = nixie.Reason(row.ColumnText(5))
			}
			list = append(list, group)
			return nil
		}, w.args...); err != nil {
			return err
		}
		for i := range list {
			if err := c.each("select l.id"+from+" and "+g[0]+" = ? order by l.died desc, l.n desc limit ?", func(row rows) error {
				list[i].Examples = append(list[i].Examples, columnID(row, 0))
				return nil
			}, append(append([]any(nil), w.args...), list[i].Key, examples)...); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}
