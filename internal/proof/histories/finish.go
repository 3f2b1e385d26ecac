package histories

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/storetest"
)

// finish ends all processes, works off what they left and looks at everything
// once more.
func (g *game) finish() *verdict {
	for _, h := range g.handles {
		g.end(0, h.client, h.owner, false)
	}
	h := &handle{}
	g.replace(h)
	if len(g.errs) > 0 {
		return &verdict{}
	}
	p := &player{game: g, at: h}
	p.drain()
	last := p.do(Call{Kind: LookAll})
	var effects []Effect
	if g.shared.Effects != nil {
		var err error
		if effects, err = g.shared.Effects(); err != nil {
			g.errs = append(g.errs, err)
		}
	}
	v := judge(g.record, g.sent, last, effects, g.blocks, g.told)
	v.kills = g.kills
	if l, ok := h.client.(Local); ok {
		broken, err := storetest.Broken(context.Background(), l.Store)
		if err != nil {
			g.errs = append(g.errs, err)
		}
		v.problems = append(v.problems, broken...)
	}
	if err := h.client.Close(); err != nil {
		g.errs = append(g.errs, err)
	}
	return v
}

// drain lets all time pass and completes what can be had. Dead messages of a
// stream that keep others waiting are given up first.
func (p *player) drain() {
	p.resume()
	if err := p.clock.advance(time.Hour); err != nil {
		p.errs = append(p.errs, err)
	}
	for _, f := range p.do(Call{Kind: LookAll}).Found {
		if f.State == nixie.Dead && p.sent[f.ID].queue == strict {
			p.do(Call{Kind: Drop, Message: f.ID})
		}
	}
	for _, queue := range []string{plain, strict} {
		for range 2 * maxMessages { // a suspect comes alone
			a := p.do(Call{Kind: Claim, Queue: queue, Max: maxMessages, Lease: leaseTime})
			if len(a.Loans) == 0 {
				break
			}
			p.do(Call{Kind: Settle, Verb: nixie.Complete, Loans: a.Loans})
		}
	}
}
