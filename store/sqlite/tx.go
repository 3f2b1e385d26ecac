package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// tx is one transaction of the committer, or one call inside a transaction of the caller, with the
// state that its parts share.
type tx struct {
	queries
	added        *inserts // rows that wait to be written; a query writes them first
	store        *Store
	now          int64  // the store's time
	at           moment // with the machine's
	owner        int64  // this process in the table owner; 0 before a claim
	queues       map[string]*queueRow
	byNumber     map[int64]*queueRow // the same queues
	batches      map[int64]*batchRow
	gone         map[int64]*vanished // by number of the owner
	dirtyStreams map[int64]*queueRow // streams whose heads are recomputed later
	woken        map[string]bool
	chains       map[int64]*chainHead // of the audit, by queue
	counters     map[counter]int64    // what to add to each
	facets       facets
	after        []func() // run once the transaction is durable
}

// queueRow is a row of the table queue during a transaction.
type queueRow struct {
	n, last, cursor int64
	fresh           int64    // new messages, which ranges will hand out
	largest         int64    // upper bound of the bytes of a body
	asked           int64    // when a claim was last noted
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
	return t.loadQueue(sqlText("queue_named"), name)
}

// queueAt returns the queue of a position.
func (t *tx) queueAt(pos int64) (*queueRow, error) {
	if q := t.byNumber[pos>>seqBits]; q != nil {
		return q, nil
	}
	q, err := t.loadQueue(sqlText("queue_numbered"), pos>>seqBits)
	if err == nil && q == nil {
		err = nixie.Errorf(nixie.CodeInternal, "position %d belongs to no queue", pos)
	}
	return q, err
}

// savedEnds lists the states of which queue has a counter, in the order of its columns.
var savedEnds = [...]int{lifecycle.Succeeded, lifecycle.Discarded, lifecycle.Canceled, lifecycle.Dead}

func (t *tx) loadQueue(query string, arg any) (*queueRow, error) {
	var q *queueRow
	err := t.each(query, func(row rows) error {
		q = &queueRow{
			n: row.ColumnInt64(0), name: row.ColumnText(1), last: row.ColumnInt64(2), cursor: row.ColumnInt64(3),
			paused: row.ColumnBool(4), fresh: row.ColumnInt64(6), largest: row.ColumnInt64(11),
			asked: row.ColumnInt64(12),
		}
		for i, state := range savedEnds {
			q.ended[state] = row.ColumnInt64(7 + i)
		}
		return fromJSON(row.ColumnText(5), &q.settings)
	}, arg)
	if q != nil && err == nil {
		t.keepQueue(q)
	}
	return q, err
}

func (t *tx) keepQueue(q *queueRow) {
	if t.queues == nil {
		t.queues, t.byNumber = map[string]*queueRow{}, map[int64]*queueRow{}
	}
	t.queues[q.name], t.byNumber[q.n] = q, q
}

// openQueue returns the named queue and adds it if it is missing.
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

// batchRow is a row of the table batch during a transaction.
type batchRow struct {
	n, owner, first, last, left, claimed, until int64
	hasRows                                     bool // some members have or had rows of their own
	dirty                                       bool
}

// batch returns the batch, or nil when it has ended.
func (t *tx) batch(n int64) (*batchRow, error) {
	if b, known := t.batches[n]; known {
		return b, nil
	}
	var b *batchRow
	err := t.each(sqlText("batch"), func(row rows) error {
		b = scanBatch(row)
		return nil
	}, n)
	t.keepBatch(n, b)
	return b, err
}

func scanBatch(row rows) *batchRow {
	return &batchRow{
		n: row.ColumnInt64(0), owner: row.ColumnInt64(1), first: row.ColumnInt64(2), last: row.ColumnInt64(3),
		left: row.ColumnInt64(4), claimed: row.ColumnInt64(5), until: row.ColumnInt64(6), hasRows: row.ColumnBool(7),
	}
}

func (t *tx) keepBatch(n int64, b *batchRow) {
	if t.batches == nil {
		t.batches = map[int64]*batchRow{}
	}
	t.batches[n] = b
}

func newTx(s *Store, added *inserts, on statements) *tx {
	added.reset(on)
	return &tx{queries: queries{added}, added: added, store: s}
}

// flush writes the changes that calls share.
func (t *tx) flush() error {
	if err := t.recomputeHeads(); err != nil {
		return err
	}
	for _, q := range t.queues {
		if q.dirty {
			if err := t.run(sqlText("save_queue"),
				q.last, q.cursor, q.fresh, q.largest, q.ended[lifecycle.Succeeded], q.ended[lifecycle.Discarded],
				q.ended[lifecycle.Canceled], q.ended[lifecycle.Dead], q.n); err != nil {
				return err
			}
		}
	}
	if err := t.flushBatches(); err != nil {
		return err
	}
	if err := t.flushCounters(); err != nil {
		return err
	}
	if err := t.markTime(); err != nil {
		return err
	}
	return t.added.flush()
}

func (t *tx) wake(queue string) {
	if t.woken == nil {
		t.woken = map[string]bool{}
	}
	t.woken[queue] = true
}

// committed does what has to wait until the transaction is durable.
func (t *tx) committed() {
	for _, do := range t.after {
		do()
	}
	for q := range t.woken {
		t.store.wakes.Ring(q)
	}
}
