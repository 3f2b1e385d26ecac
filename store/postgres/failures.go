package postgres

import (
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// failureRow is a row of the table failure that is to be written.
type failureRow struct {
	failureKind
	pos       int64
	failed    int64
	text, doc string
}

// attachmentRow is a row of the table attachment that is to be written.
type attachmentRow struct {
	pos, ordinal int64
	i            int
	nixie.Attachment
}

// failureKind has what many failures of a call have in common.
type failureKind struct {
	queue, ordinal, at int64
	class              nixie.Class
	reason             nixie.Reason
	decision           nixie.Verb
}

// tell appends a failure to the history of a message.
func (t *tx) tell(m *message, f *nixie.Failure, steps []string, verb nixie.Verb) {
	m.ordinal++
	t.keepFailure(m, f, steps, m.ordinal, t.now, verb)
	m.reason = string(f.Reason)
	if l := m.letter; l != nil { // a letter shows the newest failure, also while its message is on its way
		l.Text = plain(f.Text)
		t.outgrow(l)
	}
	if m.ordinal > nixie.MaxHistory {
		t.work.long = append(t.work.long, m.pos)
	}
}

// keepFailure notes a failure to be written, of an attempt that knew of the steps.
func (t *tx) keepFailure(m *message, f *nixie.Failure, steps []string, ordinal, at int64, verb nixie.Verb) {
	t.doc = appendFailure(t.doc[:0], f, steps)
	t.work.failures = append(t.work.failures, failureRow{
		failureKind{m.queue, ordinal, at, f.Class, f.Reason, verb}, m.pos, lifecycle.Nanos(f.FailedAt), plain(f.Text), string(t.doc),
	})
	for i, a := range f.Attachments {
		t.work.attachments = append(t.work.attachments, attachmentRow{m.pos, ordinal, i, a})
	}
}

// outgrow moves the failure that a letter has of its own to the table failure: newer ones come.
func (t *tx) outgrow(l *letterRow) {
	t.touchLetter(l)
	t.work.outgrown = append(t.work.outgrown, l.pos)
}

// own keeps the failure by which a message died in its new letter: it is the newest of all that are
// to be written.
func (t *tx) own(l *letterRow) {
	last := len(t.work.failures) - 1
	if l.stored || last < 0 || t.work.failures[last].pos != l.pos || l.m.ordinal > nixie.MaxHistory {
		return
	}
	f := &t.work.failures[last]
	l.ordinal, l.at, l.decision, l.doc = f.ordinal, f.at, f.decision, f.doc
	t.work.failures = t.work.failures[:last]
}

// flushFailures writes failures, after those that letters had of their own. It drops the oldest but
// the first of histories that are too long.
func (t *tx) flushFailures() {
	if len(t.work.outgrown) > 0 {
		t.run("keep_own_failures.sql", t.work.outgrown)
		t.run("drop_own_failures.sql", t.work.outgrown)
	}
	t.store.bulk.failures.insert(t, t.work.failures)
	for _, a := range t.work.attachments {
		t.run("insert_attachment.sql", a.pos, a.ordinal, a.i, plain(a.Name), notNull(a.Data), a.Truncated)
	}
	if len(t.work.long) > 0 {
		t.run("drop_old_failures.sql", t.work.long, nixie.MaxHistory)
	}
}

func (s *Store) failureWriter() bulkWriter[failureRow, failureKind] {
	common := []column[failureRow]{
		of("queue", "int", func(f failureRow) int64 { return f.queue }),
		of("ordinal", "bigint", func(f failureRow) int64 { return f.ordinal }),
		of("at", "bigint", func(f failureRow) int64 { return f.at }),
		of("class", "text", func(f failureRow) string { return plain(string(f.class)) }),
		of("reason", "text", func(f failureRow) string { return plain(string(f.reason)) }),
		of("decision", "text", func(f failureRow) string { return string(f.decision) }),
	}
	return makeBulkWriter(s, "failure", func(f failureRow) failureKind { return f.failureKind }, common,
		of("pos", "bigint", func(f failureRow) int64 { return f.pos }),
		of("failed", "bigint", func(f failureRow) int64 { return f.failed }),
		of("text", "text", func(f failureRow) string { return f.text }), text("low", func(f failureRow) string { return low(f.text) }),
		of("doc", "text", func(f failureRow) string { return f.doc }))
}

// notNull returns bytes that are never null.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// story has what is kept of a message outside its row.
type story struct {
	body    []byte
	history []nixie.Failure
	dropped int
	damage  []string
}

// readStories reads the bodies and, if they are wanted, the histories of messages, oldest failure
// first. A failure that cannot be read keeps its position, with what has columns of its own, and is
// named.
func (t *tx) readStories(positions []int64, histories bool) (map[int64]*story, error) {
	stories := map[int64]*story{}
	at := map[[2]int64]int{} // in the history, by message and ordinal
	for _, pos := range positions {
		stories[pos] = &story{}
	}
	t.read(func(r row) error {
		var pos int64
		var body []byte
		err := r.Scan(&pos, &body)
		stories[pos].body = body
		return err
	}, "select pos, body from @.message where pos = any($1)", positions)
	if !histories {
		return stories, t.send()
	}
	t.read(func(r row) error {
		var pos, ordinal, recorded int64
		var class, reason, decision, text, doc string
		if err := r.Scan(&pos, &ordinal, &class, &reason, &decision, &text, &doc, &recorded); err != nil {
			return err
		}
		s := stories[pos]
		f, err := decodeFailure(doc)
		if err != nil {
			s.damage = append(s.damage, fmt.Sprintf("failure %d: %s", ordinal, err))
			f = nixie.Failure{FailedAt: lifecycle.Moment(recorded)}
		}
		f.Class, f.Reason, f.Decision, f.Text = nixie.Class(class), nixie.Reason(reason), nixie.Verb(decision), text
		at[[2]int64{pos, ordinal}] = len(s.history)
		s.history = append(s.history, f)
		s.dropped = int(ordinal) - len(s.history)
		return nil
	}, "read_histories.sql", positions)
	t.read(func(r row) error {
		var pos, ordinal int64
		var a nixie.Attachment
		if err := r.Scan(&pos, &ordinal, &a.Name, &a.Data, &a.Truncated); err != nil {
			return err
		}
		if i, ok := at[[2]int64{pos, ordinal}]; ok {
			f := &stories[pos].history[i]
			f.Attachments = append(f.Attachments, a)
		}
		return nil
	}, "read_attachments.sql", positions)
	return stories, t.send()
}
