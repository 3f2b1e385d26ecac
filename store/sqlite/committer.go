package sqlite

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/nixie-go/nixie"
)

// Bounds of one transaction of the committer.
const (
	maxCalls      = 512
	maxCommitSize = 32 << 20 // bytes of bodies
)

// write is one caller's part of a transaction.
type write struct {
	do    func(*tx) error // may run again in a transaction of its own, so it starts its results afresh
	size  int
	state atomic.Int32 // waiting, taken or left
	done  chan error
}

const (
	waiting = iota
	taken
	left
)

// write runs do inside the next transaction and returns when that is durable.
func (s *Store) write(ctx context.Context, size int, do func(*tx) error) error {
	s.calls.Add(1)
	defer s.calls.Done()
	if err := s.begin(ctx); err != nil {
		return err
	}
	w := &write{do: do, size: size, done: make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return stopped(ctx)
	}
	select {
	case err := <-w.done:
		return s.explain(context.Background(), err)
	case <-ctx.Done():
		if w.state.CompareAndSwap(waiting, left) {
			return stopped(ctx)
		}
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the caller left while the commit ran, so it may or may not have happened: repeat it with the same keys: %w", context.Cause(ctx))
	}
}

// commitLoop is the committer: the only goroutine that writes. Calls that
// arrive while one transaction runs form the next; there is no timer.
func (s *Store) commitLoop(c conn) {
	defer close(s.idle)
	defer func() { _ = c.Close() }()
	group := make([]*write, 0, maxCalls)
	for first := range s.writes {
		group = s.gather(append(group[:0], first))
		if err := s.broken.Load(); err != nil {
			answer(group, *err)
			continue
		}
		s.commitGroup(c, group)
	}
}

func (s *Store) gather(group []*write) []*write {
	size := group[0].size
	for len(group) < maxCalls && size < maxCommitSize {
		select {
		case w, open := <-s.writes:
			if !open {
				return group
			}
			group = append(group, w)
			size += w.size
		default:
			return group
		}
	}
	return group
}

func answer(group []*write, err error) {
	for _, w := range group {
		w.done <- err
	}
}

// commitGroup commits all calls together. If one of them fails, nothing of the
// group is kept and each call gets a transaction of its own.
func (s *Store) commitGroup(c conn, group []*write) {
	live := group[:0]
	for _, w := range group {
		if w.state.CompareAndSwap(waiting, taken) {
			live = append(live, w)
		}
	}
	if len(live) == 0 {
		return
	}
	err := s.commit(c, live)
	if err == nil || len(live) == 1 || s.broken.Load() != nil {
		answer(live, err)
		return
	}
	for _, w := range live {
		w.done <- s.commit(c, []*write{w})
	}
}

// commit runs the calls in one transaction. Its error means that none of them
// happened, unless it has the code outcome-unknown.
func (s *Store) commit(c conn, calls []*write) error {
	if err := c.run("begin immediate"); err != nil {
		return err
	}
	t := &tx{conn: c, store: s, now: s.now()}
	err := t.runAll(calls)
	if err == nil {
		err = t.flush()
	}
	if err != nil {
		if rollback := s.rollback(c); rollback != nil {
			return rollback
		}
		return err
	}
	if err := c.run("commit"); err != nil {
		return s.commitFailed(c, err)
	}
	t.committed()
	return nil
}

func (t *tx) runAll(calls []*write) error {
	for _, w := range calls {
		if err := w.do(t); err != nil {
			return err
		}
	}
	return nil
}

// commitFailed decides what a failed COMMIT means. A full disk leaves the
// transaction open and it is rolled back: nothing happened. After anything
// else, above all a failed sync, nobody knows what is on the disk: this process
// must not go on with the file.
func (s *Store) commitFailed(c conn, cause error) error {
	if code := sqlite.ErrCode(cause).ToPrimary(); !c.AutocommitEnabled() && (code == sqlite.ResultFull || code == sqlite.ResultBusy) {
		if err := s.rollback(c); err != nil {
			return err
		}
		return cause
	}
	if !c.AutocommitEnabled() {
		_ = c.run("rollback") // the connection is given up anyway
	}
	return s.giveUp(nixie.CodeOutcomeUnknown, fmt.Errorf("commit failed, so it may or may not have happened: %w", cause))
}

// rollback undoes the open transaction; SQLite may have done so by itself.
func (s *Store) rollback(c conn) error {
	if c.AutocommitEnabled() {
		return nil
	}
	if err := c.run("rollback"); err != nil && !c.AutocommitEnabled() {
		return s.giveUp(nixie.CodeUnavailable, fmt.Errorf("roll back: %w", err))
	}
	return nil
}

// giveUp ends all use of the file by this process: it has to be opened again,
// which recovers it.
func (s *Store) giveUp(code nixie.Code, cause error) error {
	later := nixie.Errorf(nixie.CodeUnavailable, "store %s is out of use after an error of the disk: start again: %w", s.path, cause)
	s.broken.CompareAndSwap(nil, &later)
	return nixie.Errorf(code, "store %s: %w", s.path, cause)
}

// tx is one transaction of the committer with what its calls share.
type tx struct {
	conn
	store   *Store
	now     int64
	owner   int64 // this process in the table owner; 0 until somebody claims
	queues  map[string]*queueRow
	batches map[int64]*batchRow
	woken   map[string]bool
	after   []func() // run once the transaction is durable
}

// queueRow is a row of the table queue while a transaction uses it.
type queueRow struct {
	n, last, cursor int64
	fresh           int64    // messages that ranges will hand out
	ended           [6]int64 // rows of log by state
	name            string
	paused          bool
	settings        nixie.QueueSettings
	dirty, isNew    bool
}

// queue returns the named queue, or nil when it does not exist.
func (t *tx) queue(name string) (*queueRow, error) {
	if q := t.queues[name]; q != nil {
		return q, nil
	}
	return t.loadQueue(queueColumns+"name = ?", name)
}

// queueAt returns the queue of a place.
func (t *tx) queueAt(pos int64) (*queueRow, error) {
	for _, q := range t.queues {
		if q.n == pos>>seqBits {
			return q, nil
		}
	}
	q, err := t.loadQueue(queueColumns+"n = ?", pos>>seqBits)
	if err == nil && q == nil {
		err = nixie.Errorf(nixie.CodeInternal, "place %d belongs to no queue", pos)
	}
	return q, err
}

const queueColumns = "select n, name, last, cursor, paused, settings, fresh, succeeded, discarded, canceled from queue where "

func (t *tx) loadQueue(query string, arg any) (*queueRow, error) {
	var q *queueRow
	err := t.each(query, func(row rows) error {
		q = &queueRow{n: row.ColumnInt64(0), name: row.ColumnText(1), last: row.ColumnInt64(2), cursor: row.ColumnInt64(3), paused: row.ColumnBool(4)}
		q.fresh = row.ColumnInt64(6)
		q.ended[stSucceeded], q.ended[stDiscarded], q.ended[stCanceled] = row.ColumnInt64(7), row.ColumnInt64(8), row.ColumnInt64(9)
		return fromJSON(row.ColumnText(5), &q.settings)
	}, arg)
	if q != nil && err == nil {
		t.keepQueue(q)
	}
	return q, err
}

func (t *tx) keepQueue(q *queueRow) {
	if t.queues == nil {
		t.queues = map[string]*queueRow{}
	}
	t.queues[q.name] = q
}

// openQueue returns the named queue and makes it if need be.
func (t *tx) openQueue(name string) (*queueRow, error) {
	q, err := t.queue(name)
	if q != nil || err != nil {
		return q, err
	}
	n, err := t.number("select coalesce(max(n), 0) + 1 from queue")
	if err != nil {
		return nil, err
	}
	if n > maxQueues {
		return nil, nixie.Errorf(nixie.CodeLimit, "store has %d queues, the limit: use message types or streams inside a queue", maxQueues)
	}
	q = &queueRow{n: n, name: name, isNew: true}
	t.keepQueue(q)
	return q, t.run("insert into queue (n, name) values (?, ?)", n, name)
}

// batchRow is a row of the table batch while a transaction uses it.
type batchRow struct {
	n, owner, first, last, left, claimed, until int64
	dirty                                       bool
}

// batch returns the batch, or nil when it has ended.
func (t *tx) batch(n int64) (*batchRow, error) {
	if b, known := t.batches[n]; known {
		return b, nil
	}
	var b *batchRow
	err := t.each("select n, owner, first, last, left, claimed, until from batch where n = ?", func(row rows) error {
		b = scanBatch(row)
		return nil
	}, n)
	t.keepBatch(n, b)
	return b, err
}

func scanBatch(row rows) *batchRow {
	return &batchRow{
		n: row.ColumnInt64(0), owner: row.ColumnInt64(1), first: row.ColumnInt64(2), last: row.ColumnInt64(3),
		left: row.ColumnInt64(4), claimed: row.ColumnInt64(5), until: row.ColumnInt64(6),
	}
}

func (t *tx) keepBatch(n int64, b *batchRow) {
	if t.batches == nil {
		t.batches = map[int64]*batchRow{}
	}
	t.batches[n] = b
}

// flush writes back what the calls changed together.
func (t *tx) flush() error {
	for _, q := range t.queues {
		if q.dirty {
			if err := t.run("update queue set last = ?, cursor = ?, fresh = ?, succeeded = ?, discarded = ?, canceled = ? where n = ?",
				q.last, q.cursor, q.fresh, q.ended[stSucceeded], q.ended[stDiscarded], q.ended[stCanceled], q.n); err != nil {
				return err
			}
		}
	}
	if err := t.flushBatches(); err != nil {
		return err
	}
	return t.markTime()
}

// clockMark is how far the kept clock may lag behind.
const clockMark = int64(time.Second)

// markTime keeps the store's time now and then, so that it does not go back
// over a restart.
func (t *tx) markTime() error {
	last := t.store.owner.marked.Load()
	if t.now-last < clockMark {
		return nil
	}
	t.after = append(t.after, func() { t.store.owner.marked.Store(t.now) })
	return t.run("insert into meta (name, value) values ('clock', ?) on conflict do update set value = excluded.value where cast(value as integer) < cast(excluded.value as integer)", fmt.Sprint(t.now))
}

func (t *tx) wake(queue string) {
	if t.woken == nil {
		t.woken = map[string]bool{}
	}
	t.woken[queue] = true
}

// committed does what must not happen before the transaction is durable.
func (t *tx) committed() {
	for _, do := range t.after {
		do()
	}
	for q := range t.woken {
		t.store.wakes.ring(q)
	}
}
