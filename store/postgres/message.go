package postgres

import (
	"errors"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// location tells where a message lies, next to the row of table message that it has for good. The
// numbers are those of the view current. checkLocks wants these locks before a change:
//
//	location        state             where it lies    locks
//	--------------  ----------------  ---------------  -----------------------------------
//	inPending       waiting, leased   row of pending   the row; in a stream also the stream
//	inLog           ended             log or success   that of its letter, if it has one
//	                                  range
//	inRangeBatch    leased            batch            the batch
//	unclaimed       waiting           message alone    cursor of the queue
//	onOrderedPath   waiting           message alone    stream, cursor of the queue
//	inOrderedBatch  leased            batch            stream, batch
type location int

const (
	nowhere location = iota
	inPending
	inLog
	inRangeBatch   // in a batch that a claim by range made
	unclaimed      // by range: no claim has reached it
	onOrderedPath  // it waits there, or has a token
	inOrderedBatch // in a batch that a claim by the ordered path made
)

// message has what a call knows of a message, and what becomes of it.
type message struct {
	lifecycle.Message
	pos, queue    int64
	queuePos      int64 // in its queue
	mtype, key    string
	stream        string // its name, ordered or not
	dedupe        string
	priority      int
	expires       int64
	hash          nixie.Hash
	in            location
	batch         int64 // whose lease it is under, in a batch
	inStream      int64 // the number of its ordered stream, as read
	orderedStream int64 // the same, of a new one on the ordered path
	reason        string
	note          string
	q             *queueRow
	letter        *letterRow
	logged        int               // state of its row of log, if it has one
	touched       bool              // it will be written
	ordinal       int64             // of its newest failure
	first, last   lifecycle.Failure // of its failures
}

// failures returns the first and the last failure of the history, nil if that is empty.
func (m *message) failures() (first, last *lifecycle.Failure) {
	if m.ordinal == 0 {
		return nil, nil
	}
	return &m.first, &m.last
}

// keep reads a row of message_columns.
func (t *tx) keep(r row) error {
	m := &message{}
	var steps, patience string
	if err := r.Scan(&m.pos, (*idColumn)(&m.ID), &m.queue, &m.mtype, &m.key, &m.stream, &m.dedupe, &m.priority, (*hashColumn)(&m.hash),
		&m.in, &m.batch, &m.State, &m.Due, &m.queuePos,
		&m.Attempts, &m.Deliveries, &m.Crashes, &m.Generation, &m.Redrives,
		&m.Number, &m.Owner, &m.Until, &m.Received, &m.Claimed, &m.Abandoned, &steps,
		&m.inStream, &m.Rank, &m.MayPass, &m.Gap, &m.reason, &m.Ended, &m.Redriven, &m.expires, &patience); err != nil {
		return err
	}
	m.Ordered, m.logged = m.inStream != 0, m.State
	if err := fromJSON(steps, &m.Steps); err != nil {
		m.Steps = nil // shown as damage; what is kept then are the new ones
	}
	m.Patience, _ = lease.ReadPatience(patience) // what is damaged is shown so; it begins anew
	t.rows[m.pos], t.byID[m.ID] = m, m
	return nil
}

// locks has what a transaction locked before it read anything; cursors by their queue.
type locks struct {
	cursors, streams, pending, letters map[int64]bool
	batches                            map[int64]*batchRow
}

// lock adds a statement that locks rows and answers with their numbers.
func (t *tx) lock(into *map[int64]bool, query string, args ...any) {
	if *into == nil {
		*into = map[int64]bool{}
	}
	t.read(func(r row) error {
		var n int64
		err := r.Scan(&n)
		(*into)[n] = true
		return err
	}, query, args...)
}

// errRaced is a race that PostgreSQL does not report: rows came between the locks and the reading.
var errRaced = errors.New("rows came while others were locked")

// checkLocks reports a race if something was read that is not locked.
func (t *tx) checkLocks() error {
	for _, m := range t.rows {
		if m.in == inPending && !t.locked.pending[m.pos] || m.inStream != 0 && !t.locked.streams[m.inStream] ||
			(m.in == unclaimed || m.in == onOrderedPath) && !t.locked.cursors[m.queue] ||
			(m.in == inRangeBatch || m.in == inOrderedBatch) && t.locked.batches[m.batch] == nil {
			return errRaced
		}
	}
	for _, l := range t.letters {
		if !t.locked.letters[l.pos] {
			return errRaced
		}
	}
	return nil
}

// hold locks messages, with all that belongs to them, and reads them; with told also the first and
// last failures.
func (t *tx) hold(ids []nixie.ID, told bool) error {
	list := uuids(ids)
	t.lockRanges(list)
	t.holdRows(which().ids, list, told)
	if err := t.send(); err != nil {
		return err
	}
	return t.checkLocks()
}

// lockRanges locks what protects messages without rows: cursors for those that wait, batches for
// those that are leased.
func (t *tx) lockRanges(ids [][16]byte) {
	t.lock(&t.locked.cursors, "lock_cursors_of.sql", ids)
	t.lockBatchesOf(ids)
}

// holdRows locks the rows of messages, and reads what is known of them. These is a condition of
// which.
func (t *tx) holdRows(these string, arg any, told bool) {
	t.lock(&t.locked.streams, fill("lock_streams_of.sql", "these", these), arg)
	t.holdRest(these, arg, told)
}

// holdRest does the same once the streams are locked.
func (t *tx) holdRest(these string, arg any, told bool) {
	t.lock(&t.locked.pending, "select pos from @.pending where pos"+these+" order by pos for update", arg)
	t.lock(&t.locked.letters, "select pos from @.letter where pos"+these+" order by pos for update", arg)
	t.clock()
	t.readMessages("c.pos"+these, arg)
	t.readLetters("pos"+these, arg)
	if told {
		t.readHeads("pos"+these, arg)
	}
}

// readMessages reads messages with their queues. The condition is about the view current, as c.
func (t *tx) readMessages(where string, args ...any) {
	t.read(t.keep, fill("read_messages.sql", "where", where), args...)
	t.readQueues("n in (select c.queue from @.message c where "+where+")", args...)
	t.list[len(t.list)-1].done = func(string) error { return t.join() }
}

// join gives messages the rows of their queues.
func (t *tx) join() error {
	for _, m := range t.rows {
		if m.q = t.queues[m.queue]; m.q == nil {
			return nixie.Errorf(nixie.CodeInternal, "message %s belongs to no queue", m.ID)
		}
	}
	return nil
}

// readHeads reads the newest and the oldest failure of messages that were read before.
func (t *tx) readHeads(where string, args ...any) {
	take := func(into func(*message) *lifecycle.Failure) func(row) error {
		return func(r row) error {
			var pos, ordinal int64
			var f lifecycle.Failure
			if err := r.Scan(&pos, &ordinal, &f.At, &f.Class, &f.Reason, &f.Text); err != nil {
				return err
			}
			if m := t.rows[pos]; m != nil {
				*into(m), m.ordinal = f, max(m.ordinal, ordinal)
			}
			return nil
		}
	}
	head := fill("read_failure.sql", "where", where)
	t.read(take(func(m *message) *lifecycle.Failure { return &m.first }), strings.ReplaceAll(head, "{direction}", ""), args...)
	t.read(take(func(m *message) *lifecycle.Failure { return &m.last }), strings.ReplaceAll(head, "{direction}", " desc"), args...)
}
