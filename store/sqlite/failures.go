package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// failureDoc is the JSON of a failure, without the fields that have columns.
type failureDoc struct {
	nixie.Failure
	Took time.Duration `json:"took_ns"`
}

func docOf(f *nixie.Failure) (string, error) {
	kept := *f
	kept.Text, kept.Attachments = "", nil
	text, err := json.Marshal(failureDoc{Failure: kept, Took: f.Took})
	if err != nil {
		return "", nixie.Errorf(nixie.CodeInternal, "encode failure: %w", err)
	}
	return string(text), nil
}

// appendFailure adds a failure to the history of a message. When there are too many it drops the
// oldest but the first.
func (t *tx) appendFailure(h *held, f *nixie.Failure) error {
	doc, err := docOf(f)
	if err != nil {
		return err
	}
	if h.ordinal == 0 && h.batch == nil { // a member of a batch has no earlier failure
		if h.ordinal, err = t.number("select coalesce(max(ordinal), 0) from failure where pos = ?", h.pos); err != nil {
			return err
		}
	}
	h.ordinal++
	if err := t.insertFailure(h.pos, h.queue, h.ordinal, t.now, f, doc, f.Decision); err != nil {
		return err
	}
	h.reason = string(f.Reason)
	if h.Redrives > 0 { // its letter shows the newest failure even while the message is queued or leased
		if err := t.run("update letter set text = ? where pos = ?", f.Text, h.pos); err != nil {
			return err
		}
	}
	if h.ordinal <= nixie.MaxHistory {
		return nil
	}
	// An adopted history can have gaps, so the ordinal is not the length.
	old, err := t.number(sqlText("oldest_droppable_failure"), h.pos, nixie.MaxHistory)
	if err != nil || old == 0 {
		return err
	}
	if err := t.run("delete from attachment where pos = ? and failure = ?", h.pos, old); err != nil {
		return err
	}
	return t.run("delete from failure where pos = ? and ordinal = ?", h.pos, old)
}

// insertFailure writes a row of failure with its attachments. doc has the fields without columns.
func (t *tx) insertFailure(pos, queue, ordinal, at int64, f *nixie.Failure, doc string, verb nixie.Verb) error {
	row := t.added.add(toFailure)
	row.num(pos).num(ordinal).num(queue).num(at).str(string(verb)).str(string(f.Reason)).str(f.Text).str(doc)
	row.num(sumOf(string(verb), string(f.Reason), f.Text, doc))
	if err := t.added.end(row); err != nil {
		return err
	}
	for i, a := range f.Attachments {
		if err := t.run(sqlText("add_attachment"),
			pos, ordinal, i, a.Name, a.Data, a.Truncated, sumOf(a.Name, string(a.Data))); err != nil {
			return err
		}
	}
	return nil
}

// failuresOf reads the first and the last failure of a message, nil if it has none.
func (t *tx) failuresOf(pos int64) (first, last *lifecycle.Failure, err error) {
	if last, err = t.failureOf(pos, "desc"); last == nil || err != nil {
		return nil, nil, err
	}
	first, err = t.failureOf(pos, "asc")
	return first, last, err
}

// failureOf reads the first failure of a message in an order of ordinals: asc or desc.
func (t *tx) failureOf(pos int64, order string) (f *lifecycle.Failure, err error) {
	return f, t.each("select text, doc from failure where pos = +? order by ordinal "+order+" limit 1", func(row rows) error {
		var doc failureDoc
		if err := fromJSON(row.ColumnText(1), &doc); err != nil {
			return err
		}
		f = &lifecycle.Failure{At: lifecycle.Nanos(doc.FailedAt), Class: doc.Class, Reason: doc.Reason, Text: row.ColumnText(0)}
		return nil
	}, pos)
}

// history reads the failures of a message, oldest first. A damaged failure keeps its position in
// the list, has only the fields with columns, and is named in damage.
func history(c conn, pos int64, damage *[]string) (list []nixie.Failure, dropped int, err error) {
	var numbers []int
	highest := 0
	err = c.each("select ordinal, decision, text, doc, at from failure where pos = +? order by ordinal", func(row rows) error {
		var doc failureDoc
		highest = row.ColumnInt(0)
		if err := fromJSON(row.ColumnText(3), &doc); err != nil {
			*damage = append(*damage, fmt.Sprintf("failure %d: %s", highest, err))
			doc = failureDoc{Failure: nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonUnknown,
				FailedAt: lifecycle.Moment(row.ColumnInt64(4))}}
		}
		f := doc.Failure
		f.Took, f.Decision, f.Text = doc.Took, nixie.Verb(row.ColumnText(1)), row.ColumnText(2)
		list, numbers = append(list, f), append(numbers, highest)
		return nil
	}, pos)
	if err != nil {
		return list, highest - len(list), err
	}
	for i, n := range numbers {
		if err := c.each("select name, data, truncated from attachment where pos = +? and failure = +? order by ordinal",
			func(row rows) error {
				list[i].Attachments = append(list[i].Attachments, nixie.Attachment{
					Name: row.ColumnText(0), Data: columnBytes(row, 1), Truncated: row.ColumnInt64(2),
				})
				return nil
			}, pos, n); err != nil {
			return nil, 0, err
		}
	}
	return list, highest - len(list), nil
}
