package runner

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/policy"
)

// Printed is what the command of an item printed, once it is known that it does
// not run again: the item succeeded, or is about to be dead or discarded. What
// attempts print that are repeated is in the history of the item only.
type Printed struct {
	Item   string   // its key, else the ID of its message
	ID     nixie.ID // of the message
	Failed bool

	Stdout, Stderr command.Output
}

// Close gives the outputs back.
func (p *Printed) Close() {
	p.Stdout.Close()
	p.Stderr.Close()
}

// outputs keeps what the last run of a command printed until its handler returns.
type outputs struct {
	mu   sync.Mutex
	kept map[nixie.ID]*Printed
}

// keep keeps an output instead of the one before.
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

// show shows what the command of an item printed, unless it is to run again. The
// item is in hand until that is done, however long nobody reads, and only then
// settled: a kill in between repeats both.
func (r *Runner) show(ctx context.Context, d *nixie.Delivery, failed error, started time.Time) {
	p := r.printed.take(d.ID)
	if p == nil {
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
	if ctx.Err() == nil { // else only this item is to end
		r.stop(err)
	}
}

// repeats reports whether a failure is followed by another attempt.
func (r *Runner) repeats(d *nixie.Delivery, failed error, started time.Time) bool {
	now := r.c.Clock()
	f := r.policyOf(d.Queue).Diagnose(d, failed, policy.Facts{StartedAt: started, FailedAt: now, Worker: r.c.Owner, Mask: r.c.Mask})
	verb := r.judge.preview(d, f, now).Verb
	return verb == nixie.Retry || verb == nixie.Release
}
