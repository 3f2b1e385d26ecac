package postgres

import (
	"cmp"
	"context"
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
			return err
		})
		if err != nil {
			return nil, err
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
	t.read(func(r row) error { return r.Scan(&t.now, &known, &void) }, `select now, exists (select from @.owner where n = $1 and not gone),
		exists (select from @.pending where state = 1 and until <= now) or exists (select from @.owner o where `+deadOwner+`)
		from (select coalesce($2::bigint, `+databaseClock+`) as now offset 0) clock`, owner, t.store.clockArg())
	t.readQueues("name = $1", queue)
	if err := t.send(); err != nil || !known {
		return nil, err
	}
	if void {
		if err := t.sweep(); err != nil {
			return nil, err
		}
	}
	c := &claims{t: t, q: t.named[queue]}
	if c.q == nil || c.q.settings.Paused {
		return c, nil
	}
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	// From here on leases may be ours: whoever leaves must not leave them to nobody.
	whole, stop := context.WithTimeout(context.WithoutCancel(t.ctx), connectPatience)
	t.ctx, t.stop = whole, stop
	lease := cmp.Or(want.Lease, c.q.settings.LeaseOrDefault())
	args := []any{c.q.n, t.now, want.Max, ageOf(&c.q.settings), owner, t.now + int64(lease), want.Fresh}
	if !c.q.settings.Ordered() {
		t.read(c.scan, claimLoose, args...)
		return c, nil
	}
	t.read(c.scan, claimOrdered, args...)
	if err := t.send(); err != nil {
		return nil, err
	}
	return c, t.pass(c)
}

// A claim locks what it takes and passes by what others hold. A suspect comes
// alone. Of each priority the first are looked at, and of those the first by turn
// are taken.
const (
	suspects = `select p.pos from @.pending p where p.queue = $1 and p.state = 0 and p.crashes > 0 and p.due <= $2 and not $7
		order by p.due - p.priority * $4::bigint, p.place limit 1 for update skip locked`
	firsts = `select c.pos from generate_series(-4, 4) as pr (priority) cross join lateral (
			select p.pos, p.due, p.place from @.pending p where p.queue = $1 and p.state = 0 and p.crashes = 0 and p.priority = pr.priority::smallint and p.due <= $2 and p.stream is null
			order by p.due, p.place limit $3 for update skip locked) c
		order by c.due - pr.priority * $4::bigint, c.place limit $3`
	taken = `update @.pending p set state = 1, owner = $5, until = $6, claimed = $2, number = p.number + 1, deliveries = p.deliveries + 1,
			attempts = p.attempts + (p.abandoned is null)::int, received = case p.received when 0 then $2 else p.received end
		from picked join @.message m on m.pos = picked.pos where p.pos = picked.pos
		returning p.pos, m.id, m.type, m.priority, m.body, m.hash, m.enqueued, m.expires, coalesce(m.key, ''), coalesce(m.stream, ''), coalesce(m.dedupe, ''), coalesce(m.headers, ''), coalesce(m.origin, ''),
			p.due, p.place, p.attempts, p.deliveries, p.crashes, p.generation, p.redrives, p.number, p.until, p.received, p.claimed, coalesce(p.abandoned, ''), coalesce(p.steps, ''), p.stream is not null, p.rank, p.gap, coalesce(p.reason, '')`

	claimLoose = `with suspect as materialized (` + suspects + `),
		picked as materialized (select pos from suspect union all select pos from (select pos from (` + firsts + `) f where not exists (select from suspect)) g) ` + taken

	// One that may pass its head has to wait once that is due.
	mayGo = `(not p.may_pass or not exists (select from (select h.pos, h.due, h.rank from @.pending h where h.stream = p.stream order by h.rank limit 1) h
		where h.pos <> p.pos and h.due <= $2 and not exists (select from @.letter l where l.stream = p.stream and l.blocks and l.rank < h.rank)
		and exists (select from @.queue q where q.n = $1 and q.strict)))`
	inStreams    = ` from @.pending p join @.stream s on s.n = p.stream where p.queue = $1 and p.state = 0 and p.due <= $2 and ` + mayGo
	claimOrdered = `with lone as materialized (` + suspects1 + `),
		streamed as materialized (select p.pos, p.due - p.priority * $4::bigint as turn, p.place` + inStreams + ` and p.crashes > 0 and not $7 order by 2, 3 limit 1 for update of p, s skip locked),
		suspect as materialized (select pos from (select * from lone union all select * from streamed) x order by turn, place limit 1),
		loose as materialized (select p.pos, p.due - p.priority * $4::bigint as turn, p.place from @.pending p where p.pos in (select pos from (` + firsts + `) f)),
		next as materialized (select c.pos, c.due - pr.priority * $4::bigint as turn, c.place from generate_series(-4, 4) as pr (priority) cross join lateral (
			select p.pos, p.due, p.place` + inStreams + ` and p.crashes = 0 and p.stream is not null and p.priority = pr.priority::smallint
			order by p.due, p.place limit $3 for update of p, s skip locked) c),
		picked as materialized (select pos from suspect union all select pos from (select pos from (select * from loose union all select * from next) x
			where not exists (select from suspect) order by turn, place limit $3) y) ` + taken
	suspects1 = `select p.pos, p.due - p.priority * $4::bigint as turn, p.place from @.pending p where p.queue = $1 and p.state = 0 and p.crashes > 0 and p.due <= $2 and p.stream is null and not $7
		order by 2, 3 limit 1 for update skip locked`
)

// claims is what a claim got.
type claims struct {
	t    *tx
	q    *queueRow
	list []*claimed
}

// claimed is one message that was claimed, with what the delivery does not show.
type claimed struct {
	d       *nixie.Delivery
	pos     int64
	turn    int64
	place   int64
	ordered bool
	rank    int64
}

func (c *claims) scan(r row) error {
	d := &nixie.Delivery{}
	m := &d.Message
	got := &claimed{d: d}
	var enqueued, expires, due, until, received, leased int64
	var headers, origin, steps string
	if err := r.Scan(&got.pos, (*[16]byte)(&m.ID), &m.Type, &m.Priority, &m.Body, (*hashColumn)(&m.Hash), &enqueued, &expires, &m.Key, &m.Stream, &m.DedupeKey, &headers, &origin,
		&due, &got.place, &m.Attempts, &m.Deliveries, &m.Crashes, &m.Generation, &m.Redrives, &d.Lease.Number, &until, &received, &leased, &d.AbandonedBy, &steps,
		&got.ordered, &got.rank, &m.OrderGap, &m.LastReason); err != nil {
		return err
	}
	m.Queue, m.State = c.q.name, nixie.Leased
	m.EnqueuedAt, m.ExpiresAt, m.FirstReceivedAt = moment(enqueued), moment(expires), moment(received)
	d.Lease.Owner, d.Lease.ExpiresAt, d.Lease.Receipt.Place = c.t.store.owner.name, moment(until), got.pos
	d.Abandoned = d.AbandonedBy != ""
	if nixie.HashBody(m.Body) != m.Hash {
		d.Damage = append(d.Damage, bodyDamage)
	}
	d.Damage = append(d.Damage, readTexts(m, headers, origin, steps)...)
	d.Loan()
	got.turn = c.q.settings.Turn(due, m.Priority)
	c.list = append(c.list, got)
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
		if got.ordered {
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
	}, `update @.pending p set gap = true from @.stream s where p.pos = any($1) and s.n = p.stream and not p.gap and (p.rank < s.top
			or exists (select from @.pending o where o.stream = s.n and o.rank < p.rank) or exists (select from @.letter l where l.stream = s.n and l.rank < p.rank)) returning p.pos`, positions)
	t.run("update @.pending set may_pass = false where pos = any($1) and may_pass", positions)
	t.run("update @.stream s set top = greatest(s.top, p.rank) from @.pending p where p.pos = any($1) and s.n = p.stream", positions)
	return t.send()
}

// Extend implements store.Queue.
func (s *Store) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
	errs := make([]error, len(deliveries))
	if len(deliveries) == 0 {
		return errs
	}
	if err := checkCall(len(deliveries)); err != nil {
		return all(errs, err)
	}
	if err := checkLease(lease); err != nil {
		return all(errs, err)
	}
	err := s.write(ctx, func(t *tx) error {
		if err := t.hold(idsOf(deliveries), false); err != nil {
			return err
		}
		for i, d := range deliveries {
			var m *message
			if m, errs[i] = t.held(d); errs[i] == nil {
				m.until = t.now + int64(lease)
				m.learn(d.Steps)
				t.touch(m)
			}
		}
		return nil
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// idsOf are the IDs of deliveries, of which some may be missing.
func idsOf(deliveries []*nixie.Delivery) []nixie.ID {
	ids := make([]nixie.ID, 0, len(deliveries))
	for _, d := range deliveries {
		if d != nil {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// held finds the message of a delivery whose lease is current.
func (t *tx) held(d *nixie.Delivery) (*message, error) {
	if d == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	m := t.byID[d.ID]
	if m == nil || m.state != stLeased || m.number != d.Lease.Number || m.until <= t.now {
		return nil, nixie.Errorf(nixie.CodeLeaseLost, "lease %d of message %s is over: its outcome was not recorded, another claim decides", d.Lease.Number, d.ID)
	}
	if len(d.Steps) > nixie.MaxSteps {
		return nil, nixie.Errorf(nixie.CodeLimit, "message has %d steps, the limit is %d: use fewer, larger steps", len(d.Steps), nixie.MaxSteps)
	}
	return m, nil
}
