package postgres

import (
	"cmp"
	"slices"

	"github.com/nixie-go/nixie"
)

// Members of a batch that succeed next to each other are logged as one success range: PostgreSQL
// need not look at each of them. A delivery has the number of its message in the batch, which tells
// which members are next to each other. A member that succeeds alone becomes a row of log.

// settled are the settlements of a call that are about one batch.
type settled struct {
	n       int64
	members []part
	runs    [][]part // at least two that are neighbours, each
	lone    []part   // the others
}

// part is a member of a batch: its number there, its position, and the index of its settlement in
// the call.
type part struct {
	nth, pos int64
	at       int
}

// addPart adds a member to the settlements of its batch. Most of a call are of the same batch.
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

// findRuns finds members next to each other. It returns false if one is mentioned twice.
func (b *settled) findRuns() bool {
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

// bounds returns the lowest and the highest position of a run.
func bounds(run []part) (low, high int64) {
	low, high = run[0].pos, run[0].pos
	for _, m := range run {
		low, high = min(low, m.pos), max(high, m.pos)
	}
	return low, high
}

// splitFarRuns makes single members of runs that spread too far for rows to be looked for.
func (b *settled) splitFarRuns() {
	b.runs = slices.DeleteFunc(b.runs, func(run []part) bool {
		low, high := bounds(run)
		if high-low < tooFar {
			return false
		}
		b.lone = append(b.lone, run...)
		return true
	})
}

// ofRanges returns the statements that complete members of batches by range. The batches are
// locked.
func (c *completing) ofRanges() (list []stmt) {
	for _, b := range c.batches {
		list = append(list, b.statement(c))
	}
	return list
}

// args returns the arguments of count_members and complete_members.
func (b *settled) args(s *Store) []any {
	k := len(b.runs)
	first, last, low, high, sizes := make([]int64, k), make([]int64, k), make([]int64, k), make([]int64, k), make([]int64, k)
	for i, run := range b.runs {
		first[i], last[i], sizes[i] = run[0].pos, run[len(run)-1].pos, int64(len(run))
		low[i], high[i] = bounds(run)
	}
	return []any{b.n, s.clockArg(), first, last, low, high, sizes, eachOf(b.lone, func(p part) int64 { return p.pos })}
}

// statement completes the members of a batch.
func (b *settled) statement(c *completing) stmt {
	return stmt{query: c.s.named("complete_members.sql"), args: b.args(c.s), each: func(r row) error {
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

// tooFar is the distance from the lowest to the highest position of a run from which on rows are
// not looked for. still_members.sql has it, too.
const tooFar = 100_000
