package runner

import (
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
)

// Printed is what the command of an item printed, once it is known that it does
// not run again: the item succeeded, or it is dead or discarded. What attempts
// print that are repeated is in the history of the item only.
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

// outputs keeps what commands printed until it is decided what becomes of their
// items.
type outputs struct {
	mu   sync.Mutex
	kept map[nixie.ID]*Printed
}

// keep keeps an output; nil drops what is kept.
func (o *outputs) keep(id nixie.ID, p *Printed) {
	if old := o.take(id); old != nil {
		old.Close()
	}
	if p == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept == nil {
		o.kept = map[nixie.ID]*Printed{}
	}
	o.kept[id] = p
}

// take returns the output of an item, nil if there is none.
func (o *outputs) take(id nixie.ID) *Printed {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.kept[id]
	delete(o.kept, id)
	return p
}

// clear drops everything.
func (o *outputs) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.kept {
		p.Close()
	}
	o.kept = nil
}

// decided shows what a command printed if its item is done with. That is before
// the settlement is kept: a kill in between repeats the item, and its output.
func (r *Runner) decided(d *nixie.Delivery, verb nixie.Verb) {
	p := r.printed.take(d.ID)
	if p == nil {
		return
	}
	if verb == nixie.Retry || verb == nixie.Release {
		p.Close()
		return
	}
	p.Failed = verb != nixie.Complete
	item := p.Item
	for _, o := range [...]*command.Output{&p.Stdout, &p.Stderr} {
		if n, why := o.Lost(); n > 0 {
			r.c.Warn("item %s: the last %d bytes of an output were not kept: %v", item, n, why)
		}
	}
	if err := r.c.Show(r.unaborted, p); err != nil {
		r.c.Warn("the output of item %s was not written: %v", item, err)
		r.stop(err)
	}
}
