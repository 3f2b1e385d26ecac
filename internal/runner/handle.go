package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
)

// commandGrace bounds the time from a command's signal to end until its kill. A worker waits longer
// for its handlers, so that the command is gone and its item released when an aborted run ends.
const commandGrace = 2 * time.Second

// handle runs the command for one item.
func (r *Runner) handle(ctx context.Context, d *nixie.Delivery) error {
	if why := r.whyHalted(); why != nil {
		return nixie.Verdict(nixie.Release, why) // claimed before the run ended
	}
	if r.wantsAnswer(d) && r.c.Answers.Make == nil {
		return r.unanswered(d)
	}
	if !r.busy.begin(ctx, d.ID) {
		return ctx.Err()
	}
	defer r.busy.end(d.ID)
	r.decider.forget(d.ID)
	started := r.c.Clock()
	err := r.rulesOf(d.Queue).attempt.Handle(ctx, d)
	defer r.printed.drop(d.ID)
	if err == nil {
		r.show(ctx, d, nil, started)
		return nil
	}
	var start *command.StartError
	if errors.As(err, &start) {
		// No item will do better: stop instead of burying all of them. Others may find out while
		// the first ends the run.
		r.halt(err)
		return nixie.Verdict(nixie.Release, err)
	}
	if ctx.Err() != nil {
		return err // the item comes back, or another process has it
	}
	if len(r.custom.args) > 0 {
		r.askCustom(ctx, d, err, started)
	}
	r.show(ctx, d, err, started)
	return err
}

// variables returns the environment variables about an item; those about its message only for work
// on queues.
func (r *Runner) variables(d *nixie.Delivery) command.ItemVariables {
	v := command.ItemVariables{ItemID: itemID(d), Attempt: d.Attempts, Lease: d.Lease.Number, Steps: d.Steps, Try: r.decider.once,
		Generation: d.Generation, FirstFailedAt: d.FirstFailedAt}
	if !d.Operation.IsZero() {
		v.Operation = d.Operation.String()
	}
	if r.c.Job == "" {
		v.Queue, v.MessageID, v.Type, v.Key, v.Stream = d.Queue, d.ID.String(), d.Type, d.Key, d.Stream
	}
	return v
}

// fields returns the lookup of a command's placeholders: fields of the item, and for work on queues
// also those of the message.
func (r *Runner) fields(d *nixie.Delivery, item items.Stored) func(string) (string, bool) {
	if r.c.Job != "" {
		return item.Field
	}
	return func(name string) (string, bool) {
		if value, ok := item.Field(name); ok {
			return value, true
		}
		switch name {
		case "id":
			return d.ID.String(), true
		case "key":
			return d.Key, true
		case "queue":
			return d.Queue, true
		case "type":
			return d.Type, true
		case "stream":
			return d.Stream, true
		}
		return "", false
	}
}

// itemID returns the key of an item, or the message's ID when a producer enqueued it without one.
func itemID(d *nixie.Delivery) string {
	if d.Key != "" {
		return d.Key
	}
	return d.ID.String()
}

// verdictFolder returns the folder of the verdicts of an owner's commands. The name of an owner may
// come from the store, so the path has its hash.
func (r *Runner) verdictFolder(owner string) string {
	hash := sha256.Sum256([]byte(owner))
	return filepath.Join(r.c.StateFolder, "verdicts", fmt.Sprintf("%x", hash[:12]))
}

// inProgress allows one command at a time for a message. It matters when this process was frozen
// for longer than its leases: a message can come back while its first command is still being ended.
type inProgress struct {
	mu   sync.Mutex
	done map[nixie.ID]chan struct{}
}

// begin waits until no other command has the message; it returns false when ctx ends first.
func (p *inProgress) begin(ctx context.Context, id nixie.ID) bool {
	for {
		p.mu.Lock()
		other := p.done[id]
		if other == nil {
			if p.done == nil {
				p.done = map[nixie.ID]chan struct{}{}
			}
			p.done[id] = make(chan struct{})
		}
		p.mu.Unlock()
		if other == nil {
			return true
		}
		select {
		case <-other:
		case <-ctx.Done():
			return false
		}
	}
}

func (p *inProgress) end(id nixie.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.done[id])
	delete(p.done, id)
}
