package postgres

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// claims collects what a claim gets.
type claims struct {
	t    *tx
	q    *queueRow
	list []*claimed
	size int // bytes of their bodies

	lease  int64    // of messages of the ordered path
	batch  int64    // of messages of the ordered path
	added  tokens   // mixed streams to which transactions of callers have appended
	names  []string // of these
	pieces []piece  // that were leased by range, of which the members of the first are being read
	mtype  string   // of the message before
	pool   []member
	bodies []byte
}

// claimed is one claimed message, with what the delivery does not show.
type claimed struct {
	d        *nixie.Delivery
	pos      int64
	dueRank  int64
	queuePos int64
	stream   int64 // of an ordered queue, else 0
	rank     int64
}

// scan reads a row of a claim: delivered_message and delivered_row.
func (c *claims) scan(r row) error {
	got, d, m := c.next()
	var enqueued, expires, due, until, received, leased, redriven, failed int64
	var headers, origin, steps, patience string
	if v := binaryRow(r); v != nil {
		whole := func(i int) int { return int(number(v[i])) }
		got.pos, m.Priority, enqueued, expires = number(v[0]), int(int16(binary.BigEndian.Uint16(v[3]))), number(v[6]), number(v[7])
		copy(m.ID[:], v[1])
		m.Type, m.Body = c.typed(v[2]), c.copied(v[4])
		copy(m.Hash[:], v[5])
		m.Key, m.Stream, m.DedupeKey, headers, origin = string(v[8]), string(v[9]), string(v[10]), string(v[11]), string(v[12])
		due, got.queuePos, until, received, leased = number(v[13]), number(v[14]), number(v[21]), number(v[22]), number(v[23])
		m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives, d.Lease.Number = whole(15), whole(16), whole(17), whole(18),
			whole(19), number(v[20])
		d.AbandonedBy, steps, got.stream, got.rank, m.OrderGap, m.LastReason = string(v[24]), string(v[25]), number(v[26]), number(v[27]),
			v[28][0] != 0, nixie.Reason(v[29])
		d.AbandonedAlone, redriven, failed = v[30][0] != 0, number(v[31]), number(v[33])
		copy(d.Operation[:], v[32])
		patience = string(v[34])
	} else if err := r.Scan(&got.pos, (*[16]byte)(&m.ID), &m.Type, &m.Priority, &m.Body, (*hashColumn)(&m.Hash), &enqueued, &expires,
		(*textColumn)(&m.Key), (*textColumn)(&m.Stream), (*textColumn)(&m.DedupeKey), (*textColumn)(&headers), (*textColumn)(&origin),
		&due, &got.queuePos, &m.Attempts, &m.Deliveries, &m.Crashes, &m.Generation, &m.Redrives, &d.Lease.Number, &until, &received,
		&leased, (*textColumn)(&d.AbandonedBy), (*textColumn)(&steps),
		&got.stream, &got.rank, &m.OrderGap, (*textColumn)(&m.LastReason), &d.AbandonedAlone, &redriven, (*idColumn)(&d.Operation),
		&failed, (*textColumn)(&patience)); err != nil {
		return err
	}
	m.EnqueuedAt, m.ExpiresAt, m.FirstReceivedAt = lifecycle.Moment(enqueued), lifecycle.Moment(expires), lifecycle.Moment(received)
	m.RedrivenAt, d.FirstFailedAt = lifecycle.Moment(redriven), lifecycle.Moment(failed)
	d.Lease.ExpiresAt, d.Lease.Handle.Pos = lifecycle.Moment(until), got.pos
	d.Abandoned = d.AbandonedBy != ""
	d.AbandonedAlone = d.AbandonedAlone && d.Abandoned
	got.dueRank = c.q.settings.DueRank(due, m.Priority)
	c.add(&got.claimed, headers, origin, steps, patience)
	return nil
}

// typed returns a type as a string: mostly that of the message before, which needs no new one.
func (c *claims) typed(name []byte) string {
	if c.mtype != string(name) {
		c.mtype = string(name)
	}
	return c.mtype
}

// add takes a delivery in.
func (c *claims) add(got *claimed, headers, origin, steps, patience string) {
	d := got.d
	d.Queue, d.State, d.Lease.Owner = c.q.name, nixie.Leased, c.t.store.owner.name
	if !lease.Intact(d) {
		d.Damage = append(d.Damage, bodyDamage)
	}
	if headers != "" || origin != "" || steps != "" || patience != "" {
		d.Damage = append(d.Damage, readTexts(&d.Message, headers, origin, steps, patience)...)
	}
	lease.Ready(d)
	c.list, c.size = append(c.list, got), c.size+len(d.Body)
}

// member is a claimed message with its delivery. The more a claim has got, the more of them are
// made at a time, and the larger are the buffers that their bodies share. A large claim needs few
// allocations, and a single message does not take the memory of many.
type member struct {
	claimed
	nixie.Delivery
}

const (
	poolSize   = 64       // most members that are made at a time
	bodiesSize = 64 << 10 // largest buffer
)

// copied copies a body into a shared buffer.
func (c *claims) copied(body []byte) []byte {
	if len(body) > bodiesSize/4 {
		return bytes.Clone(body)
	}
	if len(body) > cap(c.bodies)-len(c.bodies) {
		c.bodies = make([]byte, 0, max(len(body), min(c.size, bodiesSize)))
	}
	from := len(c.bodies)
	c.bodies = append(c.bodies, body...)
	return c.bodies[from:len(c.bodies):len(c.bodies)]
}

// next returns a new member from the pool.
func (c *claims) next() (*member, *nixie.Delivery, *nixie.Message) {
	if len(c.pool) == 0 {
		c.pool = make([]member, max(1, min(len(c.list), poolSize)))
	}
	got := &c.pool[0]
	c.pool = c.pool[1:]
	got.d = &got.Delivery
	return got, got.d, &got.d.Message
}

// scanOrdered reads a row of claim_ordered.
func (c *claims) scanOrdered(r row) error {
	got, d, m := c.next()
	var headers, origin string
	var claimed int64
	if v := binaryRow(r); v != nil {
		d.Lease.Handle.Stream, got.pos, claimed = number(v[0]), number(v[1]), number(v[12])
		c.copyGiven(m, v[2:])
		headers, origin = string(v[10]), string(v[11])
	} else {
		if err := r.Scan(&d.Lease.Handle.Stream, &got.pos, (*idColumn)(&m.ID), (*textColumn)(&m.Type), &m.Body, (*hashColumn)(&m.Hash),
			(*momentColumn)(&m.EnqueuedAt), (*momentColumn)(&m.ExpiresAt),
			(*textColumn)(&m.Key), (*textColumn)(&m.Stream), (*textColumn)(&headers), (*textColumn)(&origin), &claimed); err != nil {
			return err
		}
	}
	if got.pos < 0 {
		c.added.add(d.Lease.Handle.Stream, got.pos)
		c.names = append(c.names, m.Stream)
		return nil
	}
	d.Lease.Handle.Batch = c.batch
	c.first(got, claimed, claimed+c.lease)
	c.add(&got.claimed, headers, origin, "", "")
	return nil
}

// first fills in what is the same for each message that is claimed for the first time.
func (c *claims) first(got *member, claimed, until int64) {
	d, m := got.d, &got.d.Message
	m.FirstReceivedAt = lifecycle.Moment(claimed)
	m.Attempts, m.Deliveries, m.Generation = 1, 1, 1
	got.dueRank, got.queuePos = lifecycle.Nanos(m.EnqueuedAt), got.pos
	d.Lease.Number, d.Lease.ExpiresAt, d.Lease.Handle.Pos = 1, lifecycle.Moment(until), got.pos
}

// copyGiven reads the columns that never change: id, type, body, hash, enqueued, expires, key,
// stream.
func (c *claims) copyGiven(m *nixie.Message, v [][]byte) {
	copy(m.ID[:], v[0])
	m.Type, m.Body = c.typed(v[1]), c.copied(v[2])
	copy(m.Hash[:], v[3])
	m.EnqueuedAt, m.ExpiresAt = lifecycle.Moment(number(v[4])), lifecycle.Moment(number(v[5]))
	m.Key, m.Stream = string(v[6]), string(v[7])
}

// piece is a batch that was leased by range, and its member that was read last.
type piece struct {
	n, claimed, until, members int64
	tx                         uint64
	pos, read                  int64
}

// scanPiece reads a batch.
func (c *claims) scanPiece(r row) error {
	var p piece
	err := r.Scan(&p.n, &p.claimed, &p.until, &p.members)
	c.pieces = append(c.pieces, p)
	return err
}

// scanMember reads a row of claimed_members.
func (c *claims) scanMember(r row) error {
	got, d, m := c.next()
	var tx uint64
	var headers, origin string
	if v := binaryRow(r); v != nil {
		tx, got.pos = uint64(number(v[0])), number(v[1])
		c.copyGiven(m, v[2:])
		headers, origin = string(v[10]), string(v[11])
	} else if err := r.Scan(&tx, &got.pos, (*[16]byte)(&m.ID), &m.Type, &m.Body, (*hashColumn)(&m.Hash), (*momentColumn)(&m.EnqueuedAt),
		(*momentColumn)(&m.ExpiresAt),
		(*textColumn)(&m.Key), (*textColumn)(&m.Stream), (*textColumn)(&headers), (*textColumn)(&origin)); err != nil {
		return err
	}
	if len(c.pieces) > 0 && c.pieces[0].read == c.pieces[0].members {
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 || c.pieces[0].read > 0 && cmp.Or(cmp.Compare(tx, c.pieces[0].tx), cmp.Compare(got.pos, c.pieces[0].pos)) <= 0 {
		return nixie.Errorf(nixie.CodeInternal, "the server answered with message %s out of its order in a batch", m.ID)
	}
	p := &c.pieces[0]
	p.tx, p.pos, p.read = tx, got.pos, p.read+1
	c.first(got, p.claimed, p.until)
	d.Lease.Handle.Batch, d.Lease.Handle.Member = p.n, p.read
	c.add(&got.claimed, headers, origin, "", "")
	return nil
}

const bodyDamage = "body: it is not the one that was accepted, its hash differs"

// readTexts reads what is kept as JSON, and names what cannot be read.
func readTexts(m *nixie.Message, headers, origin, steps, patience string) (damage []string) {
	for _, j := range [...]struct {
		what, text string
		into       any
	}{{"headers", headers, &m.Headers}, {"origin", origin, &m.Origin}, {"steps", steps, &m.Steps}} {
		if err := fromJSON(j.text, j.into); err != nil {
			damage = append(damage, j.what+": "+err.Error())
		}
	}
	var err error
	if m.Patience, err = lease.ReadPatience(patience); err != nil {
		damage = append(damage, "patience: "+err.Error())
	}
	return damage
}

// sorted returns the deliveries by rank.
func (c *claims) sorted() []*nixie.Delivery {
	slices.SortFunc(c.list, func(a, b *claimed) int {
		return cmp.Or(cmp.Compare(a.dueRank, b.dueRank), cmp.Compare(a.queuePos, b.queuePos))
	})
	return eachOf(c.list, func(got *claimed) *nixie.Delivery { return got.d })
}
