package postgres

import (
	"cmp"
	"slices"

	"github.com/nixie-go/nixie"
)

// Members of a batch that succeed side by side are logged together, as a span: nobody
// looks at each of them. A delivery has the number of its message in its batch, so that
// it is known here which are neighbours. One alone is a row of log.

// settled are settlements of a call that are about one batch.
type settled struct {
	n       int64
	members []part
	runs    [][]part // at least two that are neighbours, each
	lone    []part   // the others
}

// part is a member of a batch: its number there, its place, and where it stands in the
// call.
type part struct {
	nth, pos int64
	at       int
}

// addPart adds a member to what is settled of its batch. Neighbours in a call are mostly
// of the same.
func addPart(list []*settled, in *nixie.LeaseHandle, at int) []*settled {
	i := len(list) - 1
	for i >= 0 && list[i].n != in.Batch {
		i--
	}
	if i < 0 {
		list = append(list, &settled{n: in.Batch})
		i = len(list) - 1
	}
	list[i].members = append(list[i].members, part{in.Member, in.Pos, at})
	return list
}

// arrange finds neighbours. It is false if one is mentioned twice.
func (b *settled) arrange() bool {
	byNumber := func(x, y part) int { return cmp.Compare(x.nth, y.nth) }
	if !slices.IsSortedFunc(b.members, byNumber) {
		slices.SortFunc(b.members, byNumber)
	}
	for from, to := 0, 1; from < len(b.members); from, to = to, to+1 {
		for to < len(b.members) && b.members[to].nth == b.members[to-1].nth+1 {
			to++
		}
		if to < len(b.members) && b.members[to].nth == b.members[to-1].nth {
			return false
		}
		if run := b.members[from:to]; len(run) > 1 {
			b.runs = append(b.runs, run)
		} else {
			b.lone = append(b.lone, run[0])
		}
	}
	return true
}

// bounds are the lowest and the highest place of a run.
func bounds(run []part) (low, high int64) {
	low, high = run[0].pos, run[0].pos
	for _, m := range run {
		low, high = min(low, m.pos), max(high, m.pos)
	}
	return low, high
}

// partFar lets the members of runs in which no rows would be looked for stand alone.
func (b *settled) partFar() {
	b.runs = slices.DeleteFunc(b.runs, func(run []part) bool {
		low, high := bounds(run)
		if high-low < tooFar {
			return false
		}
		b.lone = append(b.lone, run...)
		return true
	})
}

// ofRanges are the statements about leases by range, whose batches are locked.
func (c *completing) ofRanges() (list []stmt) {
	for _, b := range c.batches {
		list = append(list, b.statement(c))
	}
	return list
}

// args are those of stillMembers.
func (b *settled) args(s *Store) []any {
	k := len(b.runs)
	first, last, low, high, sizes := make([]int64, k), make([]int64, k), make([]int64, k), make([]int64, k), make([]int64, k)
	for i, run := range b.runs {
		first[i], last[i], sizes[i] = run[0].pos, run[len(run)-1].pos, int64(len(run))
		low[i], high[i] = bounds(run)
	}
	return []any{b.n, s.clockArg(), first, last, low, high, sizes, eachOf(b.lone, func(p part) int64 { return p.pos })}
}

// statement is rangeCompletion of a batch.
func (b *settled) statement(c *completing) stmt {
	return stmt{query: c.s.named(rangeCompletion), args: b.args(c.s), each: func(r row) error {
		var runs, lone []int64
		if err := r.Scan(&runs, &lone); err != nil {
			return err
		}
		for _, i := range runs {
			for _, m := range b.runs[i-1] {
				c.done[m.at] = true
			}
		}
		for _, i := range lone {
			c.done[b.lone[i-1].at] = true
		}
		return nil
	}}
}

// spanUpTo finds the nearest span that begins before the message "at", if it reaches the
// place that is said after it.
const spanUpTo = `select from (select s.last_tx, s.last from @.span s where s.queue = at.queue and (s.after_tx, s.after) < (at.tx, at.pos) order by s.after_tx desc, s.after desc limit 1) s where (s.last_tx, s.last) >= `

// tooFar is how far it may be from the lowest to the highest place of a run for which rows
// are looked for.
const (
	tooFar     = 100_000
	tooFarText = "100000"
)

// stillMembers finds which members of a batch, which is locked, are leased: $3 to $7 are
// runs of neighbours, by the places of the first and the last, the lowest and the highest
// place, and how many they are; $8 are the places of members that stand alone. These are
// the runs and the lone of which none is in a span already nor has a row. Rows of members
// are looked for among all rows with such places, and not at all if it is too far from
// the lowest to the highest.
const stillMembers = `with
	clock as materialized (select coalesce($2::bigint, ` + databaseClock + `) as now),
	b as materialized (select b.*, clock.now, b.members - b.remains > b.spanned as mixed from @.batch b, clock where b.n = $1 and b.until > clock.now),
	run as materialized (select u.nth, u.members, b.queue, f.tx as first_tx, u.first, at.tx as last_tx, at.pos as last, b.now, b.claimed
		from b cross join unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) with ordinality u (first, last, low, high, members, nth)
		cross join lateral (select m.tx from @.message m where m.pos = u.first and m.queue = b.queue and not m.apart limit 1) f
		cross join lateral (select m.queue, m.tx, m.pos from @.message m where m.pos = u.last and m.queue = b.queue and not m.apart limit 1) at
		where (f.tx, u.first) > (b.after_tx, b.after) and (at.tx, at.pos) <= (b.last_tx, b.last)
			and (b.spanned = 0 or not exists (` + spanUpTo + `(f.tx, u.first)))
			and (not b.mixed or u.high - u.low < ` + tooFarText + ` and not exists (
				select from (select p.pos from @.pending p where p.pos between u.low and u.high union all select g.pos from @.log g where g.pos between u.low and u.high) r
				cross join lateral (select m.tx from @.message m where m.pos = r.pos and m.queue = b.queue and not m.apart limit 1) m
				where (m.tx, r.pos) >= (f.tx, u.first) and (m.tx, r.pos) <= (at.tx, at.pos)))),
	lone as materialized (select u.nth, at.pos, b.queue, b.now, b.claimed
		from b cross join unnest($8::bigint[]) with ordinality u (pos, nth) cross join lateral (select m.queue, m.tx, m.pos from @.message m where m.pos = u.pos and m.queue = b.queue and not m.apart limit 1) at
		where (at.tx, at.pos) > (b.after_tx, b.after) and (at.tx, at.pos) <= (b.last_tx, b.last)
			and (b.spanned = 0 or not exists (` + spanUpTo + `(at.tx, at.pos)))
			and (not b.mixed or (select p.pos from @.pending p where p.pos = at.pos) is null and (select l.pos from @.log l where l.pos = at.pos) is null))`

// countMembers counts these, and rangeCompletion settles them and answers with their
// numbers.
const (
	countMembers    = stillMembers + ` select (select coalesce(sum(members), 0) from run)::bigint + (select count(*) from lone)`
	rangeCompletion = stillMembers + `,
	spanned as (insert into @.span (queue, after_tx, after, last_tx, last, members, ended, received) select queue, first_tx, first - 1, last_tx, last, members, now, claimed from run),
	logged as (insert into @.log (pos, queue, state, ended, received) select pos, queue, 2, now, claimed from lone),
	counted as materialized (select b.queue, b.remains, s.k, s.k + (select count(*) from lone) as n from b, (select coalesce(sum(members), 0) as k from run) s),
	gone as (delete from @.batch x using counted c where x.n = $1 and c.remains <= c.n),
	kept as (update @.batch x set remains = x.remains - c.n, spanned = x.spanned + c.k from counted c where x.n = $1 and c.remains > c.n and c.n > 0),
	summed as (insert into @.counter (queue, state, reason, n) select c.queue, 2, '', c.n from counted c where c.n > 0)
	select array(select nth from run), array(select nth from lone) from b`
)
