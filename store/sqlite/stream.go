package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// A claim finds at most two messages of a stream, those in the state queued. They are the head, and
// a message that may pass a head that waits. The others are in the state behind. Code that changes
// a stream only marks it dirty. The heads of dirty streams are recomputed once, before a claim and
// at the end of the transaction.

// markDirty notes that a stream has changed; 0 is none.
func (t *tx) markDirty(q *queueRow, stream int64) {
	if stream == 0 {
		return
	}
	if t.dirtyStreams == nil {
		t.dirtyStreams = map[int64]*queueRow{}
	}
	t.dirtyStreams[stream] = q
}

func (t *tx) recomputeHeads() error {
	for stream, q := range t.dirtyStreams {
		if err := t.recomputeHead(q, stream); err != nil {
			return err
		}
	}
	clear(t.dirtyStreams)
	return nil
}

// join puts a row into its stream, if the queue is ordered.
func (t *tx) join(q *queueRow, p *pendingRow, stream string, rank int64) error {
	if stream == "" || !q.settings.Ordered() {
		return nil
	}
	n, err := t.openStream(q, stream)
	if err != nil {
		return err
	}
	p.stream, p.Rank, p.Ordered = n, rank, true
	if p.State == lifecycle.Queued {
		p.State = lifecycle.Behind
	}
	t.markDirty(q, n)
	return nil
}

func (t *tx) openStream(q *queueRow, name string) (int64, error) {
	n, err := t.number("select n from stream where queue = ? and name = ?", q.n, name)
	if n != 0 || err != nil {
		return n, err
	}
	if err := t.run("insert into stream (queue, name) values (?, ?)", q.n, name); err != nil {
		return 0, err
	}
	return t.LastInsertRowID(), nil
}

// appendRank returns a rank behind all messages of the queue. It uses up a sequence number, so no
// message will have that position.
func (t *tx) appendRank(q *queueRow) int64 {
	q.last++
	q.dirty = true
	pos := q.n<<seqBits | q.last
	q.skips(pos)
	return pos
}

// ahead is the message that comes first in a stream by its queue's order.
type ahead struct {
	pos, rank, due int64
	state          int
}

func (on queries) ahead(query string, stream int64) (a ahead, err error) {
	err = on.each(query, func(row rows) error {
		a = ahead{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2), row.ColumnInt(3)}
		return nil
	}, stream)
	return a, err
}

// first returns the message of a stream that is next if nothing holds it up. Its position is 0 when
// all messages have ended.
func (on queries) first(set *nixie.QueueSettings, stream int64) (ahead, error) {
	if set.Order == nixie.OrderStrict {
		return on.ahead(sqlText("stream_first_by_rank"), stream)
	}
	return on.ahead(sqlText("stream_first_by_due"), stream)
}

// blocked reports whether a dead message holds up the first one.
func (on queries) blocked(stream int64, first ahead) (bool, error) {
	n, err := on.number(sqlText("stream_is_blocked"), stream, first.rank)
	return n != 0, err
}

// recomputeHead decides which messages of a stream claims can find.
func (t *tx) recomputeHead(q *queueRow, stream int64) error {
	leased, err := t.ahead(sqlText("stream_leased"), stream)
	if err != nil {
		return err
	}
	first, err := t.first(&q.settings, stream)
	if err != nil {
		return err
	}
	blocked, err := t.blocked(stream, first)
	if err != nil {
		return err
	}
	if first.pos == 0 && !blocked {
		gone, err := t.change("delete from stream where n = ?1 and not exists (select 1 from letter where stream = ?1)", stream)
		if gone == 1 || err != nil {
			return err
		}
	}
	head, passes := lifecycle.Goes(q.settings.Order == nixie.OrderStrict, leased.pos != 0, blocked, first.due, t.now)
	if leased.pos != 0 {
		blocked, first.due = false, 0
	}
	if !head {
		first.pos = 0
	}
	var passing int64
	if passes {
		if passing, err = t.number(sqlText("stream_passing"), stream, first.pos); err != nil {
			return err
		}
	}
	if err := t.flip(q.n, lifecycle.Queued, lifecycle.Behind, sqlText("stream_hide_all_but_two"), stream, first.pos, passing); err != nil {
		return err
	}
	if err := t.flip(q.n, lifecycle.Behind, lifecycle.Queued, sqlText("stream_show_two"), first.pos, passing); err != nil {
		return err
	}
	if passing != 0 || first.pos != 0 && first.due <= t.now {
		t.wake(q.name)
	}
	return t.run("update stream set blocked = ?1, due = ?2 where n = ?3 and (blocked <> ?1 or due <> ?2)", blocked, first.due, stream)
}

// isNext reports whether a row that a claim has found may be handed out. A message that may pass
// its head has to wait once the head is due.
func (t *tx) isNext(q *queueRow, r *pendingRow) (bool, error) {
	if r.stream == 0 || !r.MayPass || q.settings.Order != nixie.OrderStrict {
		return true, nil
	}
	first, err := t.first(&q.settings, r.stream)
	if err != nil || first.pos == r.pos {
		return err == nil, err
	}
	blocked, err := t.blocked(r.stream, first)
	_, passes := lifecycle.Goes(true, false, blocked, first.due, t.now)
	return passes, err
}

// pass notes that a message of a stream is handed out, and whether that is out of order.
func (t *tx) pass(q *queueRow, r *pendingRow) error {
	if r.stream == 0 {
		return nil
	}
	n, err := t.number(sqlText("stream_is_out_of_order"), r.stream, r.Rank)
	if err != nil {
		return err
	}
	r.Gap, r.MayPass = r.Gap || n != 0, false
	if err := t.flip(q.n, lifecycle.Queued, lifecycle.Behind, sqlText("stream_hide_all_but_one"), r.stream, r.pos); err != nil {
		return err
	}
	return t.run("update stream set top = max(top, ?), blocked = 0, due = 0 where n = ?", r.Rank, r.stream)
}

// leaveStream takes a letter out of its stream.
func (t *tx) leaveStream(l *letterRow) error {
	if l.stream == 0 {
		return nil
	}
	q, err := t.queueAt(l.pos)
	if err != nil {
		return err
	}
	t.markDirty(q, l.stream)
	return t.run("update letter set stream = null, blocks = 0 where pos = ?", l.pos)
}

// reorder applies a new order to the existing streams. A change between an order and none is
// refused while messages have not ended, because no rule says which of them came first.
func (t *tx) reorder(q *queueRow, settings *nixie.QueueSettings) error {
	old := q.settings
	if old.Order == settings.Order && old.DeadHead == settings.DeadHead {
		return nil
	}
	if old.Ordered() != settings.Ordered() {
		busy, err := t.number(sqlText("queue_is_busy"),
			q.fresh, q.n<<seqBits, q.n<<seqBits|maxSeq)
		if err != nil {
			return err
		}
		if busy != 0 {
			return store.Busy(q.name)
		}
		if err := t.run("update letter set stream = null, rank = 0, blocks = 0 where queue = ? and rank > 0", q.n); err != nil {
			return err
		}
	}
	if !settings.Blocks() {
		if err := t.run("update letter set blocks = 0 where stream in (select n from stream where queue = ?) and blocks = 1",
			q.n); err != nil {
			return err
		}
	}
	return t.each("select n from stream where queue = ?", func(row rows) error {
		t.markDirty(q, row.ColumnInt64(0))
		return nil
	}, q.n)
}

var _ store.Streams = (*Store)(nil)
