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

// maxViolations limits the list of violations of one rule.
const maxViolations = 100

// rules are the invariants between tables. The statement check_… of each returns what breaks it:
// an ID or a name, and what is wrong.
var rules = [...]string{
	"message-lost", "message-two-states", "message-passed-by", "message-no-queue", "row-no-message",
	"queue-count", "waiting-count", "retrying-count", "queue-ended", "queue-tally", "batch-count",
	"batch-has-rows", "lease-no-owner", "lease-stale", "stream-lost", "stream-two-leases",
	"stream-stuck", "stream-order", "counters", "key-orphan", "key-missing", "letter-no-message",
	"letter-missing", "letter-status", "letter-facet", "letter-count", "letter-text", "letter-history",
	"note-orphan", "original-orphan", "attachment-orphan", "operation-item", "operation-outcome",
	"document-value",
}

// Check implements store.Keeper. In one snapshot it checks every invariant between the tables,
// every hash, sum and chain, and the schema.
func (s *Store) Check(ctx context.Context) (store.Report, error) {
	report := store.Report{Violations: []store.Violation{}}
	err := s.read(ctx, func(c conn) error {
		for _, check := range [...]func(conn, *store.Report) error{
			checkPages, s.checkSchema, checkRules, checkBodies, checkSums, checkChains,
		} {
			if err := check(c, &report); err != nil {
				return err
			}
		}
		return nil
	})
	return report, err
}

// checkPages runs the engine's own check of the file.
func checkPages(c conn, r *store.Report) error {
	return c.each("pragma integrity_check(10)", func(row rows) error {
		if found := row.ColumnText(0); found != "ok" {
			r.Violations = append(r.Violations, store.Violation{Rule: "file", Subject: "file", Text: found})
		}
		return nil
	})
}

// checkSchema compares tables, indexes and views with those that the migrations make. The caller
// may have further tables in the file.
func (s *Store) checkSchema(c conn, r *store.Report) error {
	m, err := NewSchema(s.path)
	if err != nil {
		return err
	}
	list, err := m.compare(c)
	for _, v := range list {
		if !strings.HasSuffix(v.Rule, "-unknown") {
			r.Violations = append(r.Violations, v)
		}
	}
	return err
}

func checkRules(c conn, r *store.Report) error {
	for _, table := range [...]string{"queue", "batch", "pending", "log", "failure", "letter", "dedupe", "item"} {
		n, err := c.number("select count(*) from " + table)
		if err != nil {
			return err
		}
		r.Checked += n
	}
	for _, rule := range rules {
		query := sqlText("check_"+strings.ReplaceAll(rule, "-", "_")) + " limit ?"
		if err := c.each(query, func(row rows) error {
			r.Violations = append(r.Violations, store.Violation{Rule: rule, Subject: dashed(row.ColumnText(0)), Text: row.ColumnText(1)})
			return nil
		}, maxViolations); err != nil {
			return fmt.Errorf("rule %s: %w", rule, err)
		}
	}
	return nil
}

// dashed writes the hexadecimal digits of an ID with dashes and returns other names unchanged.
func dashed(s string) string {
	if len(s) != 32 {
		return s
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func checkBodies(c conn, r *store.Report) error {
	found := 0
	return c.each(sqlText("check_bodies"), func(row rows) error {
		r.Checked++
		var have nixie.Hash
		row.ColumnBytes(2, have[:])
		if nixie.HashBody(columnBytes(row, 1)) != have && found < maxViolations {
			found++
			r.Violations = append(r.Violations, store.Violation{
				Rule: "body-hash", Subject: columnID(row, 0).String(), Text: "its body is not the one that was accepted",
			})
		}
		return nil
	})
}

func checkChains(c conn, r *store.Report) error {
	var before nixie.Hash
	queue, number, found := "", int64(0), 0
	return c.each(sqlText("check_chains"), func(row rows) error {
		r.Checked++
		e := store.AuditEntry{
			Queue: row.ColumnText(0), Number: row.ColumnInt64(1), At: lifecycle.Moment(row.ColumnInt64(2)), Actor: row.ColumnText(3),
			Event: store.Event(row.ColumnText(4)), Subject: columnID(row, 5), Reason: row.ColumnText(6), Operation: columnID(row, 10),
		}
		row.ColumnBytes(7, e.Hash[:])
		if e.Queue != queue {
			queue, number, before = e.Queue, row.ColumnInt64(8), nixie.Hash{}
			row.ColumnBytes(9, before[:])
		}
		number++
		if (e.Number != number || e.Sum(before) != e.Hash) && found < maxViolations {
			found++
			r.Violations = append(r.Violations, store.Violation{
				Rule: "audit-chain", Subject: queue,
				Text: "entry " + strconv.FormatInt(e.Number, 10) + " was changed, added or follows a removed one",
			})
			number = e.Number
		}
		before = e.Hash
		return nil
	})
}
