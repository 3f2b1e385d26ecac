package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// maxViolations bounds how many violations of one rule are listed.
const maxViolations = 100

// rules are the invariants between tables. Each has a file in the folder sql,
// check_message_lost.sql for example, that finds what breaks it: an ID or a name, and a text.
var rules = [...]string{
	"message-lost", "message-two-states", "batch-count", "success-range-count", "message-queue", "message-id", "row-no-message",
	"lease-stale", "counters",
	"stream-lost", "stream-empty", "stream-two-leases", "stream-stuck", "stream-order", "stream-mixed",
	"letter-message", "letter-id", "letter-failure", "original-orphan", "message-letter", "key-missing", "key-orphan",
	"audit-chain", "queue-count", "letter-count", "operation-letter", "operation-outcome",
}

// Check implements store.Keeper.
func (s *Store) Check(ctx context.Context) (store.Report, error) {
	var report store.Report
	err := s.view(ctx, func(t *tx) error {
		for _, table := range [...]string{"message", "pending", "log", "success_range", "letter", "history", "entry", "item"} {
			t.read(func(r row) error {
				var n int64
				err := r.Scan(&n)
				report.Checked += n
				return err
			}, "select count(*) from @."+table)
		}
		for _, rule := range rules {
			t.read(func(r row) error {
				v := store.Violation{Rule: rule}
				err := r.Scan(&v.Subject, &v.Text)
				report.Violations = append(report.Violations, v)
				return err
			}, "select * from ("+texts()["check_"+strings.ReplaceAll(rule, "-", "_")]+") v limit $1", maxViolations)
		}
		t.checkBodies(&report)
		t.checkDocuments(&report)
		t.checkChains(&report)
		return t.send()
	})
	return report, err
}

// checkBodies computes every hash again, because the database does not know what was accepted.
func (t *tx) checkBodies(report *store.Report) {
	t.read(func(r row) error {
		v := store.Violation{Rule: "message-hash", Text: bodyDamage}
		err := r.Scan(&v.Subject)
		report.Violations = append(report.Violations, v)
		return err
	}, "damaged_bodies.sql", maxViolations)
}

// checkDocuments looks for values that are no JSON, and for leases without an end.
func (t *tx) checkDocuments(report *store.Report) {
	t.readDocuments(func(d *store.Document) {
		report.Checked++
		v := store.Violation{Rule: "document-value", Subject: d.String()}
		switch {
		case !json.Valid(d.Value):
			v.Text = "has a value that is no JSON"
		case (d.Owner == "") != d.Until.IsZero():
			v.Text = "has a lease without an owner or without an end"
		default:
			return
		}
		report.Violations = append(report.Violations, v)
	}, "true")
}

// checkChains computes every link of the audits again.
func (t *tx) checkChains(report *store.Report) {
	var queue string
	var before nixie.Hash
	t.read(func(r row) error {
		var e store.AuditEntry
		var at int64
		if err := r.Scan(&e.Queue, &e.Number, &at, &e.Actor, &e.Event, (*idColumn)(&e.Subject), &e.Reason, (*hashColumn)(&e.Hash),
			(*hashColumn)(&e.Before), (*idColumn)(&e.Operation)); err != nil {
			return err
		}
		e.At = lifecycle.Moment(at)
		if e.Queue != queue {
			queue, before = e.Queue, e.Before
		}
		if e.Hash != e.Sum(before) {
			report.Violations = append(report.Violations, store.Violation{Rule: "audit-chain", Subject: queue,
				Text: fmt.Sprintf("entry %d was changed", e.Number)})
		}
		before = e.Hash
		return nil
	}, "read_chains.sql")
}
