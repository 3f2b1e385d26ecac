package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// currentWidth is the number of columns that scanCurrent reads.
const currentWidth = 32

// scanCurrent reads the columns of current_columns. It leaves out and names damaged columns.
func (s *Store) scanCurrent(c conn, row rows, m *nixie.Message) (damage []string, err error) {
	m.ID, m.Queue = columnID(row, 1), row.ColumnText(2)
	m.Type, m.Key, m.Stream, m.DedupeKey = row.ColumnText(3), row.ColumnText(4), row.ColumnText(5), row.ColumnText(6)
	m.Priority = row.ColumnInt(7)
	row.ColumnBytes(8, m.Hash[:])
	now := s.look()
	m.EnqueuedAt, m.ExpiresAt = now.shown(row.ColumnInt64(11)), lifecycle.Moment(row.ColumnInt64(12))
	if m.State = lifecycle.State(row.ColumnInt(13)); m.State == "" {
		damage = append(damage, fmt.Sprintf("state %d is not one of ours", row.ColumnInt(13)))
	}
	m.MayPass, m.OrderGap = row.ColumnBool(27), row.ColumnBool(28)
	m.Attempts, m.Deliveries, m.Crashes = row.ColumnInt(16), row.ColumnInt(17), row.ColumnInt(18)
	m.Generation, m.Redrives = row.ColumnInt(19), row.ColumnInt(20)
	m.FirstReceivedAt, m.EndedAt = now.shown(row.ColumnInt64(23)), now.shown(row.ColumnInt64(25))
	m.RedrivenAt = now.shown(row.ColumnInt64(30))
	if m.State == nixie.Queued {
		m.NotBefore = now.shown(row.ColumnInt64(14))
	}
	for _, j := range [...]struct {
		col  int
		what string
		into any
	}{{9, "headers", &m.Headers}, {10, "origin", &m.Origin}, {24, "steps", &m.Steps}, {31, "patience", &m.Patience}} {
		if err := fromJSON(row.ColumnText(j.col), j.into); err != nil {
			damage = append(damage, j.what+": "+err.Error())
		}
	}
	for _, since := range [...]*time.Time{&m.Patience.FailingSince, &m.Patience.RefusedSince} {
		*since = now.shown(lifecycle.Nanos(*since))
	}
	if m.State != nixie.Leased {
		return damage, nil
	}
	owner, until, claimed := row.ColumnInt64(21), row.ColumnInt64(22), row.ColumnInt64(29)
	if !row.ColumnBool(15) { // a member of a batch
		if err := c.each(sqlText("batch_with"), func(b rows) error {
			owner, until, claimed = b.ColumnInt64(0), b.ColumnInt64(1), b.ColumnInt64(2)
			m.FirstReceivedAt = now.shown(claimed)
			return nil
		}, row.ColumnInt64(0)); err != nil {
			return damage, err
		}
	}
	m.LeasedAt, m.LeaseExpiresAt = now.shown(claimed), now.shown(until)
	return damage, c.each("select name from owner where n = ?", func(o rows) error {
		m.LeaseOwner = o.ColumnText(0)
		return nil
	}, owner)
}

// Letters implements store.DeadLetters. The cost of a page depends on its size and on the number of
// facets, not on the number of letters. A page that finds too few letters among those that it scans
// ends early, with a cursor.
func (s *Store) Letters(ctx context.Context, filter nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	var after *deathPos
	if page.Cursor != "" {
		died, n, err := splitCursor(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = &deathPos{died, n}
	}
	limit := page.Rows()
	var list []nixie.Letter
	var next, full deathPos
	err := s.read(ctx, func(c conn) error {
		p := plan(c, &filter, s.look())
		if err := p.begin(); err != nil {
			return err
		}
		if after != nil {
			p.after(*after)
		}
		size := 0
		var err error
		next, err = p.walk(sqlText("letter_columns"), p.first(limit), max(maxScanned, limit*p.weight()), func(row rows) error {
			l, err := s.scanLetter(c, row, page)
			list = append(list, l)
			if err = fullPage(err, &size, &l.Message, l.History); err == nil && len(list) == limit {
				err = errEnough
			}
			if errors.Is(err, errEnough) {
				full = deathPos{row.ColumnInt64(currentWidth + 13), row.ColumnInt64(currentWidth)}
			}
			return err
		})
		if page.Scanned != nil {
			*page.Scanned += p.scanned
		}
		return chosen(err)
	})
	if next = cmp.Or(full, next); next == (deathPos{}) || err != nil {
		return list, "", err
	}
	return list, fmt.Sprintf("%d.%d", next.died, next.pos), nil
}

// maxPageSize limits the bytes of bodies and histories on a page.
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

func (s *Store) scanLetter(c conn, row rows, page store.Page) (nixie.Letter, error) {
	at := func(i int) int { return currentWidth + i }
	l := nixie.Letter{
		ID: columnID(row, at(1)), Status: nixie.Status(row.ColumnText(at(2))), Cause: nixie.Cause(row.ColumnText(at(3))),
		Class: nixie.Class(row.ColumnText(at(4))), Reason: nixie.Reason(row.ColumnText(at(5))),
		Signature: row.ColumnText(at(6)), Fingerprint: row.ColumnText(at(7)),
		Redrivable: row.ColumnBool(at(8)), NeedsReview: row.ColumnBool(at(9)), Rule: row.ColumnText(at(10)),
		FirstFailedAt: lifecycle.Moment(row.ColumnInt64(at(11))), LastFailedAt: lifecycle.Moment(row.ColumnInt64(at(12))),
		DiedAt: lifecycle.Moment(row.ColumnInt64(at(13))), ResolvedAt: lifecycle.Moment(row.ColumnInt64(at(14))),
		Operation: columnID(row, at(15)), Note: row.ColumnText(at(16)), Revision: row.ColumnInt64(at(17)), KeyTaken: row.ColumnBool(at(20)),
	}
	var err error
	if l.Damage, err = s.scanCurrent(c, row, &l.Message); err != nil {
		return l, err
	}
	l.Message.LastFailure, l.Message.LastReason = row.ColumnText(at(18)), nixie.Reason(row.ColumnText(at(19)))
	switch {
	case page.Whole:
	case page.Bodies:
		return l, bodyOf(c, row.ColumnInt64(0), &l.Message, &l.Damage)
	default:
		return l, nil
	}
	l.History, l.HistoryDropped, err = story(c, row.ColumnInt64(0), &l.Message, &l.Damage)
	if err != nil {
		return l, err
	}
	if n := len(l.History); n > 0 {
		l.Artifacts = l.History[n-1].Attachments
	}
	if l.Notes, err = notes(c, row.ColumnInt64(at(0))); err != nil {
		return l, err
	}
	return l, original(c, &l, row.ColumnInt64(at(0)))
}

const bodyDamage = "body: it is not the one that was accepted, its hash differs"

// story reads the body of a message, checked, and its history.
func story(c conn, pos int64, m *nixie.Message, damage *[]string) (list []nixie.Failure, dropped int, err error) {
	if err := bodyOf(c, pos, m, damage); err != nil {
		return nil, 0, err
	}
	return history(c, pos, damage)
}

// bodyOf reads the body of a message, checked.
func bodyOf(c conn, pos int64, m *nixie.Message, damage *[]string) (err error) {
	m.Body, err = body(c, pos)
	if err == nil && nixie.HashBody(m.Body) != m.Hash {
		*damage = append(*damage, bodyDamage)
	}
	return err
}

func body(c conn, pos int64) ([]byte, error) {
	var b []byte
	err := c.each("select body from message where pos = ?", func(row rows) error {
		b = columnBytes(row, 0)
		return nil
	}, pos)
	return b, err
}
