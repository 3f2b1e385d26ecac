package histories

import (
	"time"

	"github.com/nixie-go/nixie"
)

// latest bounds how many of the newest loans, or of the newest dead, are looked at to
// use one again: old ones make little trouble.
const latest = 12

// take takes up to n loans in hand, or now and then one that any client has or had:
// a client that knows the number of a lease may use it, and an old one is refused.
func (p *player) take(n int) []Loan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.loans) > 0 && (len(p.mine) == 0 || p.rng.IntN(6) == 0) {
		newest := p.loans[max(0, len(p.loans)-latest):]
		return []Loan{p.forgetful(newest[p.rng.IntN(len(newest))])}
	}
	n = min(n, len(p.mine))
	taken := make([]Loan, n)
	for i := range taken {
		j := p.rng.IntN(len(p.mine))
		taken[i] = p.forgetful(p.mine[j])
		p.mine = append(p.mine[:j], p.mine[j+1:]...)
	}
	return taken
}

// forgetful loses the store's own note on a loan now and then.
func (p *player) forgetful(l Loan) Loan {
	if p.rng.IntN(5) == 0 {
		l.Pos, l.Batch, l.Member = 0, 0, 0
	}
	return l
}

func (p *player) settle() {
	verbs := []nixie.Verb{
		nixie.Complete, nixie.Complete, nixie.Complete, nixie.Retry, nixie.Retry, nixie.Release, nixie.Discard,
		nixie.Bury, nixie.Bury, nixie.Hold, nixie.Halt,
	}
	c := Call{Kind: Settle, Verb: verbs[p.rng.IntN(len(verbs))], Loans: p.take(1 + p.rng.IntN(maxLoans)), Patience: p.patience()}
	if c.Verb == nixie.Retry || c.Verb == nixie.Release {
		c.Delay = time.Duration(p.rng.IntN(3)) * time.Second
	}
	if len(c.Loans) == 0 {
		return
	}
	if c.Verb != nixie.Release && p.rng.IntN(3) == 0 {
		c.Follows = p.numbers(len(c.Loans))
	}
	p.do(c)
	if c.buries() {
		p.mu.Lock()
		for _, l := range c.Loans {
			p.dead = append(p.dead, l.ID)
		}
		p.mu.Unlock()
	}
	if c.Verb == nixie.Halt {
		p.resume()
	}
}

// resume undoes what a halt does to a queue.
func (p *player) resume() {
	for _, queue := range []string{plain, strict} {
		p.do(Call{Kind: Resume, Queue: queue})
	}
}

func (p *player) extend() {
	loans := p.take(1 + p.rng.IntN(3))
	if len(loans) == 0 {
		return
	}
	p.do(Call{Kind: Extend, Lease: leaseTime + time.Duration(p.rng.IntN(3))*time.Second, Loans: loans, Patience: p.patience()})
	p.mine = append(p.mine, loans...) // it may be ours no longer, which is to be found out
}

// finishOne completes a message together with an effect.
func (p *player) finishOne() {
	loans := p.take(1)
	if len(loans) == 0 || p.shared.Effects == nil {
		p.mine = append(p.mine, loans...)
		return
	}
	c := Call{Kind: Finish, Loans: loans, Effect: p.numbers(1), Undo: p.rng.IntN(6) == 0, Patience: p.patience()}
	if p.rng.IntN(2) == 0 {
		c.Follows = c.Effect
	}
	p.do(c)
}

// numbers takes n new numbers and returns the first.
func (p *player) numbers(n int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest += int64(n)
	return p.newest - int64(n) + 1
}

// about does something to a message at random, mostly to one of the newest.
func (p *player) about(k Kind) {
	p.mu.Lock()
	n := len(p.names)
	if n > 0 {
		n -= min(p.rng.IntN(n), p.rng.IntN(n))
	}
	id := nixie.ID{}
	if n > 0 {
		id = p.names[n-1]
	}
	if dead := p.dead[max(0, len(p.dead)-latest):]; len(dead) > 0 && k == Redrive && p.rng.IntN(4) > 0 {
		id = dead[p.rng.IntN(len(dead))]
	}
	p.mu.Unlock()
	if n > 0 {
		c := Call{Kind: k, Message: id}
		if k != Look {
			c.Patience = p.patience()
		}
		p.do(c)
	}
}

// wait lets time pass: a little, or as long as a lease.
func (p *player) wait() {
	steps := []time.Duration{time.Second, 3 * time.Second, leaseTime - time.Millisecond, leaseTime}
	if err := p.clock.advance(steps[p.rng.IntN(len(steps))]); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errs = append(p.errs, err)
	}
}

// leave ends the process of this player, and perhaps of others, in favour of a
// new one.
func (p *player) leave() {
	p.mu.Lock()
	may := p.ended < maxEnds
	p.ended++
	p.mu.Unlock()
	if !may {
		return
	}
	before, owner := p.replace(p.at)
	if before == nil {
		return
	}
	kill := p.rng.IntN(3) > 0
	if kill && p.at.process {
		p.mu.Lock()
		p.kills++
		p.mu.Unlock()
	}
	p.end(p.number, before, owner, kill)
}
