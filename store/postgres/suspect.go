package postgres

import (
	"cmp"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// anySuspects is the condition that messages that vanished with a holder are due at c.now
// in the queue named $4.
const anySuspects = `exists (select from @.queue q join @.pending p on p.queue = q.n where q.name = $4 and p.state = 0 and p.crashes > 0 and p.due <= c.now)`

// suspectsNow are the kinds of those in queue $1 at $2: to be judged or not, and after
// how many crashes. $3 is whether one of them is in somebody's hand.
const suspectsNow = `select p.abandoned is not null, p.crashes, exists (select from @.pending o where o.queue = $1 and o.until > 0 and o.state = 1 and o.crashes > 0)
	from @.pending p where p.queue = $1 and p.state = 0 and p.crashes > 0 and p.due <= $2 and ` + mayGo + ` group by 1, 2 order by 1 desc, 2`

// claimSuspects claims messages of queue $1 that vanished with a holder: those to be
// judged if $7, else those with $8 crashes, of which $9 says that they were alone twice.
// At most $3, with $10 bytes; $2 is now, $4 what a priority is worth, $5 the owner, $6
// the end of the leases.
func claimSuspects() string {
	const kind = ` and p.crashes > 0 and (p.abandoned is not null) = $7 and ($7 or p.crashes = $8)`
	const turn = `p.pos, p.due - p.priority * $4::bigint as turn, p.place`
	return `with loose as materialized (select ` + turn + ` from @.pending p where p.queue = $1 and p.state = 0 and p.due <= $2 and p.stream is null` + kind + ` order by 2, 3 limit $3 for update skip locked),
	next as materialized (select ` + turn + ` from @.pending p cross join lateral (select o.n from @.stream o where o.n = p.stream offset 0) s where p.queue = $1 and p.state = 0 and p.due <= $2 and ` + mayGo + kind + ` order by 2, 3 limit $3 for no key update of p, s skip locked),
	sized as materialized (select x.pos, row_number() over w as nth, sum(octet_length(m.body)) over w as size
		from (select * from loose union all select * from next) x join @.message m on m.pos = x.pos window w as (order by x.turn, x.place)),
	picked as materialized (select pos from sized where nth <= $3 and (size <= $10 or nth = 1)) ` +
		leases("$2", "$6") + `, alone = case when $7 then p.alone else $9 end from picked join @.message m on m.pos = picked.pos where p.pos = picked.pos returning ` + carried + `, ` + apart
}

// handOutSuspects hands out all that is to be judged, else a group of suspects. It
// reports whether nothing is to be handed out beside: also where suspects wait for
// somebody who has nothing else in hand.
func (c *claims) handOutSuspects(want nixie.Want, owner int64) (done bool, err error) {
	type kind struct {
		judged  bool
		crashes int
	}
	t := c.t
	var kinds []kind
	tried := false
	t.read(func(r row) error {
		var k kind
		err := r.Scan(&k.judged, &k.crashes, &tried)
		kinds = append(kinds, k)
		return err
	}, suspectsNow, c.q.n, t.now)
	if err := t.send(); err != nil {
		return false, err
	}
	until := t.now + int64(cmp.Or(want.Lease, c.q.settings.LeaseOrDefault()))
	for _, k := range kinds {
		most := nixie.MaxBatch
		switch {
		case k.judged:
		case want.NoSuspects:
			return !tried, nil
		default:
			most = min(want.Max, lease.GroupSize(want.Parallel, k.crashes))
		}
		t.read(c.scan, t.store.handouts.suspects, c.q.n, t.now, most, ageOf(&c.q.settings), owner, until, k.judged, k.crashes, lease.AloneTwice(want.Parallel, k.crashes), nixie.MaxBatchBytes)
		if err := t.send(); err != nil {
			return false, err
		}
		if len(c.list) > 0 {
			return true, t.pass(c)
		}
	}
	return false, nil
}
