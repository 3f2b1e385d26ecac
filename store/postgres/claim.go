package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Claim implements store.Queue. It passes by what others are about to change, so
// it never waits for them.
func (s *Store) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	want.Max = min(max(want.Max, 1), nixie.MaxBatch)
	if want.Lease != 0 {
		if err := checkLease(want.Lease); err != nil {
			return nil, err
		}
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	owner := s.owner.self()
	for {
		var got *claims
		err := s.transact(ctx, func(t *tx) (err error) {
			got, err = t.claim(queue, want, owner)
			if err != nil || got == nil || !want.Noted {
				return err
			}
			return t.noteClaimed(got, owner)
		})
		if err != nil {
			return nil, err
		}
		if got != nil && got.turnedBack {
			s.looks.turnBack(got.q.n)
			if len(got.list) == 0 {
				continue
			}
		}
		if got != nil {
			return got.sorted(), nil
		}
		if owner, err = s.owner.registered(ctx, s, owner); err != nil {
			return nil, s.explain(err)
		}
	}
}

func checkLease(lease time.Duration) error {
	if lease < nixie.MinLease || lease > nixie.MaxLease {
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", lease, nixie.MinLease, nixie.MaxLease)
	}
	return nil
}

// claim ends the leases that are over and hands out what is due. It is nil if the
// owner is not in the list, and nothing was done then.
func (t *tx) claim(queue string, want nixie.Want, owner int64) (*claims, error) {
	var known, void bool
	since := t.store.looks.since()
	t.read(func(r row) error { return r.Scan(&t.now, &known, &void) }, `select c.now, exists (select from @.owner where n = $1 and not gone), `+isVoid+`
		from (select now, `+sinceOf("$3")+` as since from (select coalesce($2::bigint, `+databaseClock+`) as now offset 0) x offset 0) c`, owner, t.store.clockArg(), since)
	t.readQueues("name = $1", queue)
	if err := t.send(); err != nil || !known {
		return nil, err
	}
	if !void {
		t.store.looks.note(t.now)
	} else if err := t.sweep(); err != nil {
		return nil, err
	}
	c := &claims{t: t, q: t.named[queue]}
	if c.q == nil || c.q.settings.Paused {
		return c, nil
	}
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	// From here on leases may be ours: whoever leaves must not leave them to nobody.
	uncut, stop := context.WithTimeout(context.WithoutCancel(t.ctx), connectPatience)
	t.ctx, t.stop = uncut, stop
	if !c.q.settings.Ordered() {
		return c, c.handOut(want, owner, since, void)
	}
	return c, c.handOutInOrder(want, owner, void)
}

// handOutInOrder hands out messages of a queue with an order: what lanes have ready, and
// then what has rows of its own. Without any of these the first is all, and does not
// wait for the disk: if the server forgets it, the turns are there again.
func (c *claims) handOutInOrder(want nixie.Want, owner int64, swept bool) error {
	t, h := c.t, c.t.store.handouts
	c.lease = int64(cmp.Or(want.Lease, c.q.settings.LeaseOrDefault()))
	most := int64(want.Max)
	var rows bool
	if c.q.settings.Order == nixie.OrderStrict {
		moves, err := c.lockCursor()
		if err != nil {
			return err
		}
		c.batch = t.store.owner.batches(owner) + 1
		t.read(c.scanLane, h.lanes, c.q.n, t.now, most, ageOf(&c.q.settings), owner, c.lease, want.Fresh, c.batch, moves, t.store.clockArg())
	}
	t.read(func(r row) error { return r.Scan(&rows, &t.now) }, "select "+anyRows+", coalesce($2::bigint, "+databaseClock+")", c.q.n, t.store.clockArg())
	if err := t.send(); err != nil {
		return err
	}
	if !rows && !swept {
		t.run("set local synchronous_commit = off")
	}
	if len(c.beside.streams) > 0 {
		rows = true
		if err := c.arrangeBeside(); err != nil {
			return err
		}
	}
	if most -= int64(len(c.list)); most == 0 || !rows {
		return nil
	}
	t.read(c.scan, h.ordered, c.q.n, t.now, most, ageOf(&c.q.settings), owner, t.now+c.lease, want.Fresh)
	if err := t.send(); err != nil {
		return err
	}
	return t.pass(c)
}

// arrangeBeside arranges streams that transactions of callers have added to. Those that
// others hold are left to the next claim.
func (c *claims) arrangeBeside() error {
	t := c.t
	held := map[int64]bool{}
	t.lock(&held, "select n from @.stream where n = any($1) order by queue, name for no key update skip locked", c.beside.streams)
	if err := t.send(); err != nil {
		return err
	}
	var left turn
	for i, n := range c.beside.streams {
		if held[n] {
			t.stir(c.q.n, c.names[i])
		} else {
			left.add(n, c.beside.places[i])
		}
	}
	if len(left.streams) > 0 {
		t.run("insert into @.turn (queue, streams, places) values ($1, $2, $3)", c.q.n, left.streams, left.places)
	}
	t.arrange()
	t.work.stirred = nil
	return nil
}

// lockCursor locks the cursor of the queue, and returns how often it had moved at
// least. A lease begins once the lock was waited for: a clock that was set is asked then. One that a server forgot the moves of is not found, and one that comes to where it
// was seen right after is not locked: so what a claim does hangs on that it moves the
// cursor.
func (c *claims) lockCursor() (moves int64, err error) {
	t, looks := c.t, &c.t.store.looks
	moves = looks.reached(c.q.n)
	c.turnedBack = moves > 0
	t.read(func(r row) error {
		var n int64
		err := r.Scan(&n)
		c.turnedBack = false
		looks.reach(c.q.n, n)
		return err
	}, "select moves from @.cursor where queue = $1 and moves >= $2 order by moves desc limit 1 for update", c.q.n, moves)
	if t.store.opts.Clock != nil {
		err = t.send()
	}
	return moves, err
}

// handOut hands out messages of a queue without order, if everything is as it was
// when the queue was read. Once leases were swept, one that is over is locked by
// somebody who ends it, and others need not wait for that.
func (c *claims) handOut(want nixie.Want, owner, since int64, swept bool) error {
	t, s := c.t, c.t.store
	lease := cmp.Or(want.Lease, c.q.settings.LeaseOrDefault())
	moves, err := c.lockCursor()
	if err != nil {
		return err
	}
	batches := s.owner.batches(owner)
	t.read(c.scan, s.handouts.loose, c.q.n, s.clockArg(), want.Max, ageOf(&c.q.settings), owner, int64(lease), want.Fresh, c.q.text, batches, nixie.MaxBatchBytes, swept, since, moves)
	t.read(c.scanPiece, pieces, batches, batches+maxPieces)
	t.read(c.scanMember, members, batches, batches+maxPieces)
	return nil
}

// claims is what a claim got.
type claims struct {
	t    *tx
	q    *queueRow
	list []*claimed

	turnedBack bool // the cursor is not where it was seen, and was not locked

	lease  int64    // of messages in order
	batch  int64    // for those from lanes
	beside turn     // streams with more than their lanes that transactions of callers have added to
	names  []string // of these
	pieces []piece  // that were leased by range, of which the members of the first are being read
	mtype  string   // of the message before
	slab   []member
	bodies []byte
}

// claimed is one message that was claimed, with what the delivery does not show.
type claimed struct {
	d      *nixie.Delivery
	pos    int64
	turn   int64
	place  int64
	stream int64 // of an ordered queue, else 0
	rank   int64
}

// scan reads a row of what carried and apart name.
func (c *claims) scan(r row) error {
	got, d, m := c.next()
	var enqueued, expires, due, until, received, leased int64
	var headers, origin, steps string
	if v := binaryRow(r); v != nil {
		whole := func(i int) int { return int(number(v[i])) }
		got.pos, m.Priority, enqueued, expires = number(v[0]), int(int16(binary.BigEndian.Uint16(v[3]))), number(v[6]), number(v[7])
		copy(m.ID[:], v[1])
		m.Type, m.Body = c.typed(v[2]), c.copied(v[4])
		copy(m.Hash[:], v[5])
		m.Key, m.Stream, m.DedupeKey, headers, origin = string(v[8]), string(v[9]), string(v[10]), string(v[11]), string(v[12])
		due, got.place, until, received, leased = number(v[13]), number(v[14]), number(v[21]), number(v[22]), number(v[23])
		m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives, d.Lease.Number = whole(15), whole(16), whole(17), whole(18), whole(19), number(v[20])
		d.AbandonedBy, steps, got.stream, got.rank, m.OrderGap, m.LastReason = string(v[24]), string(v[25]), number(v[26]), number(v[27]), v[28][0] != 0, nixie.Reason(v[29])
	} else if err := r.Scan(&got.pos, (*[16]byte)(&m.ID), &m.Type, &m.Priority, &m.Body, (*hashColumn)(&m.Hash), &enqueued, &expires, (*textColumn)(&m.Key), (*textColumn)(&m.Stream), (*textColumn)(&m.DedupeKey), (*textColumn)(&headers), (*textColumn)(&origin),
		&due, &got.place, &m.Attempts, &m.Deliveries, &m.Crashes, &m.Generation, &m.Redrives, &d.Lease.Number, &until, &received, &leased, (*textColumn)(&d.AbandonedBy), (*textColumn)(&steps),
		&got.stream, &got.rank, &m.OrderGap, (*textColumn)(&m.LastReason)); err != nil {
		return err
	}
	m.EnqueuedAt, m.ExpiresAt, m.FirstReceivedAt = moment(enqueued), moment(expires), moment(received)
	d.Lease.ExpiresAt, d.Lease.Receipt.Place = moment(until), got.pos
	d.Abandoned = d.AbandonedBy != ""
	got.turn = c.q.settings.Turn(due, m.Priority)
	c.add(&got.claimed, headers, origin, steps)
	return nil
}

// typed is a type, which is mostly that of the message before.
func (c *claims) typed(name []byte) string {
	if c.mtype != string(name) {
		c.mtype = string(name)
	}
	return c.mtype
}

// add takes in what was read.
func (c *claims) add(got *claimed, headers, origin, steps string) {
	d := got.d
	d.Queue, d.State, d.Lease.Owner = c.q.name, nixie.Leased, c.t.store.owner.name
	if !d.Intact() {
		d.Damage = append(d.Damage, bodyDamage)
	}
	if headers != "" || origin != "" || steps != "" {
		d.Damage = append(d.Damage, readTexts(&d.Message, headers, origin, steps)...)
	}
	d.Loan()
	c.list = append(c.list, got)
}

// member is a claimed message with its delivery. They are made slabSize at a time, and
// their bodies lie side by side, so that the memory of many is a few pieces.
type member struct {
	claimed
	nixie.Delivery
}

const (
	slabSize   = 64
	bodiesSize = 64 << 10
)

// copied is a copy of a body.
func (c *claims) copied(body []byte) []byte {
	if len(body) > bodiesSize/4 {
		return bytes.Clone(body)
	}
	if len(body) > cap(c.bodies)-len(c.bodies) {
		c.bodies = make([]byte, 0, bodiesSize)
	}
	from := len(c.bodies)
	c.bodies = append(c.bodies, body...)
	return c.bodies[from:len(c.bodies):len(c.bodies)]
}

// next is room for one more.
func (c *claims) next() (*member, *nixie.Delivery, *nixie.Message) {
	if len(c.slab) == 0 {
		c.slab = make([]member, slabSize)
	}
	got := &c.slab[0]
	c.slab = c.slab[1:]
	got.d = &got.Delivery
	return got, got.d, &got.d.Message
}

// scanLane reads a row of claimLanes.
func (c *claims) scanLane(r row) error {
	got, d, m := c.next()
	var headers, origin string
	var claimed int64
	if v := binaryRow(r); v != nil {
		d.Lease.Receipt.Stream, got.pos, claimed = number(v[0]), number(v[1]), number(v[12])
		c.copyGiven(m, v[2:])
		headers, origin = string(v[10]), string(v[11])
	} else {
		if err := r.Scan(&d.Lease.Receipt.Stream, &got.pos, (*idColumn)(&m.ID), (*textColumn)(&m.Type), &m.Body, (*hashColumn)(&m.Hash), (*momentColumn)(&m.EnqueuedAt), (*momentColumn)(&m.ExpiresAt),
			(*textColumn)(&m.Key), (*textColumn)(&m.Stream), (*textColumn)(&headers), (*textColumn)(&origin), &claimed); err != nil {
			return err
		}
	}
	if got.pos < 0 {
		c.beside.add(d.Lease.Receipt.Stream, got.pos)
		c.names = append(c.names, m.Stream)
		return nil
	}
	d.Lease.Receipt.Batch = c.batch
	c.first(got, claimed, claimed+c.lease)
	c.add(&got.claimed, headers, origin, "")
	return nil
}

// first makes a delivery the first of its message.
func (c *claims) first(got *member, claimed, until int64) {
	d, m := got.d, &got.d.Message
	m.FirstReceivedAt = moment(claimed)
	m.Attempts, m.Deliveries, m.Generation = 1, 1, 1
	got.turn, got.place = nanos(m.EnqueuedAt), got.pos
	d.Lease.Number, d.Lease.ExpiresAt, d.Lease.Receipt.Place = 1, moment(until), got.pos
}

// copyGiven takes over what a message has for good: id, type, body, hash, enqueued,
// expires, key, stream.
func (c *claims) copyGiven(m *nixie.Message, v [][]byte) {
	copy(m.ID[:], v[0])
	m.Type, m.Body = c.typed(v[1]), c.copied(v[2])
	copy(m.Hash[:], v[3])
	m.EnqueuedAt, m.ExpiresAt = moment(number(v[4])), moment(number(v[5]))
	m.Key, m.Stream = string(v[6]), string(v[7])
}

// piece is a batch that was leased by range, and which of its members was read last.
type piece struct {
	n, claimed, until, members int64
	tx                         uint64
	pos, read                  int64
}

// scanPiece reads a row of pieces.
func (c *claims) scanPiece(r row) error {
	var p piece
	err := r.Scan(&p.n, &p.claimed, &p.until, &p.members)
	c.pieces = append(c.pieces, p)
	return err
}

// scanMember reads a row of members.
func (c *claims) scanMember(r row) error {
	got, d, m := c.next()
	var tx uint64
	var headers, origin string
	if v := binaryRow(r); v != nil {
		tx, got.pos = uint64(number(v[0])), number(v[1])
		c.copyGiven(m, v[2:])
		headers, origin = string(v[10]), string(v[11])
	} else if err := r.Scan(&tx, &got.pos, (*[16]byte)(&m.ID), &m.Type, &m.Body, (*hashColumn)(&m.Hash), (*momentColumn)(&m.EnqueuedAt), (*momentColumn)(&m.ExpiresAt),
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
	d.Lease.Receipt.Batch, d.Lease.Receipt.Member = p.n, p.read
	c.add(&got.claimed, headers, origin, "")
	return nil
}

const bodyDamage = "body: it is not the one that was accepted, its hash differs"

// readTexts reads what is kept as JSON, and names what cannot be read.
func readTexts(m *nixie.Message, headers, origin, steps string) (damage []string) {
	for _, j := range [...]struct {
		what, text string
		into       any
	}{{"headers", headers, &m.Headers}, {"origin", origin, &m.Origin}, {"steps", steps, &m.Steps}} {
		if err := fromJSON(j.text, j.into); err != nil {
			damage = append(damage, j.what+": "+err.Error())
		}
	}
	return damage
}

// sorted are the deliveries by their turn.
func (c *claims) sorted() []*nixie.Delivery {
	slices.SortFunc(c.list, func(a, b *claimed) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.place, b.place)) })
	return eachOf(c.list, func(got *claimed) *nixie.Delivery { return got.d })
}

// pass notes which messages of streams were handed out, and which of them out of
// order. Their streams are locked.
func (t *tx) pass(c *claims) error {
	var list []*claimed
	byPos := map[int64]*claimed{}
	for _, got := range c.list {
		if got.stream != 0 {
			list = append(list, got)
			byPos[got.pos] = got
			t.stir(c.q.n, got.d.Stream)
		}
	}
	if len(list) == 0 {
		return nil
	}
	positions := eachOf(list, func(got *claimed) int64 { return got.pos })
	t.read(func(r row) error {
		var pos int64
		err := r.Scan(&pos)
		if got := byPos[pos]; got != nil {
			got.d.OrderGap = true
		}
		return err
	}, `update @.pending p set gap = true where p.pos = any($1) and not p.gap and (p.rank < (select s.top from @.stream s where s.n = p.stream)
			or exists (select from @.pending o where o.stream = p.stream and o.rank < p.rank) or exists (select from @.letter l where l.stream = p.stream and l.rank < p.rank)) returning p.pos`, positions)
	t.run("update @.pending set may_pass = false where pos = any($1) and may_pass", positions)
	t.run("update @.stream s set top = greatest(s.top, (select p.rank from @.pending p where p.stream = s.n and p.stream is not null and p.state = 1 limit 1)) where s.n = any($1)",
		eachOf(list, func(got *claimed) int64 { return got.stream }))
	return t.send()
}
