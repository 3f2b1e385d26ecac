package runner

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/policy"
)

// Printed holds the output of the last attempt of an item: the one that succeeded, or after which
// the item dies or is discarded. The output of attempts that are retried is only in the history of
// the item.
type Printed struct {
	Item   string   // its key, else the ID of its message
	ID     nixie.ID // of the message
	Failed bool

	Stdout, Stderr command.Output
}

// Close releases the outputs.
func (p *Printed) Close() {
	p.Stdout.Close()
	p.Stderr.Close()
}

// outputs keeps the output of the last execution of a command until its handler returns.
type outputs struct {
	mu   sync.Mutex
	kept map[nixie.ID]*Printed
}

// keep replaces the output of an item.
func (o *outputs) keep(p *Printed) {
	o.drop(p.ID)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept == nil {
		o.kept = map[nixie.ID]*Printed{}
	}
	o.kept[p.ID] = p
}

// take returns the output of an item, nil if there is none.
func (o *outputs) take(id nixie.ID) *Printed {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.kept[id]
	delete(o.kept, id)
	return p
}

func (o *outputs) drop(id nixie.ID) {
	if p := o.take(id); p != nil {
		p.Close()
	}
}

// show shows the output of an item, unless the item will be retried. The item is settled after
// that, also when the reader of the output is slow. A kill in between repeats both.
func (r *Runner) show(ctx context.Context, d *nixie.Delivery, failed error, started time.Time) {
	p := r.printed.take(d.ID)
	if p == nil {
		return
	}
	if r.c.Show == nil { // it was only for an answer
		p.Close()
		return
	}
	if failed != nil && r.repeats(d, failed, started) {
		p.Close()
		return
	}
	p.Failed = failed != nil
	item := p.Item
	for _, o := range [...]*command.Output{&p.Stdout, &p.Stderr} {
		if n, why := o.Lost(); n > 0 {
			r.c.Warn("item %s: the last %d bytes of an output were not kept: %v", item, n, why)
		}
	}
	err := r.c.Show(ctx, p)
	if err == nil {
		return
	}
	r.c.Warn("the output of item %s was not written: %v", item, err)
	if ctx.Err() == nil { // otherwise only this item ends
		r.stop(err)
	}
}

// repeats reports whether a failure is followed by another attempt.
func (r *Runner) repeats(d *nixie.Delivery, failed error, started time.Time) bool {
	now := r.c.Clock()
	f := r.policyOf(d.Queue).Diagnose(d, failed, policy.Attempt{StartedAt: started, FailedAt: now, Worker: r.c.Owner, Mask: r.c.Mask})
	verb := r.decider.preview(d, f, now).Verb
	return verb == nixie.Retry || verb == nixie.Release
}
