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

// commandGrace is how long a command may take to end once it was asked to. It
// is less than a worker waits for its handlers, so that a stubborn command is
// gone, and its item released, when an aborted run ends.
const commandGrace = 2 * time.Second

// handle runs the command for one item.
func (r *Runner) handle(ctx context.Context, d *nixie.Delivery) error {
	if why := r.whyHalted(); why != nil {
		return nixie.Verdict(nixie.Release, why) // in hand already when the run ended
	}
	if !r.busy.begin(ctx, d.ID) {
		return ctx.Err()
	}
	defer r.busy.end(d.ID)
	r.judge.forget(d.ID)
	started := r.c.Clock()
	err := r.rulesOf(d.Queue).attempt.Handle(ctx, d)
	defer r.printed.drop(d.ID)
	if err == nil {
		r.show(ctx, d, nil, started)
		return nil
	}
	if ctx.Err() != nil {
		return err // it comes back, or was lost to another
	}
	var start *command.StartError
	if errors.As(err, &start) {
		// No item will do better: stop instead of burying all of them.
		r.halt(err)
		return nixie.Verdict(nixie.Release, err)
	}
	if len(r.custom.args) > 0 {
		r.ask(ctx, d, err, started)
	}
	r.show(ctx, d, err, started)
	return err
}

// variables are what every command sees of its item, and where messages are
// worked on of their envelope.
func (r *Runner) variables(d *nixie.Delivery) command.ItemVariables {
	v := command.ItemVariables{ItemID: itemID(d), Attempt: d.Attempts, Lease: d.Lease.Number, Steps: d.Steps}
	if r.c.Job == "" {
		v.Queue, v.MessageID, v.Type, v.Key, v.Stream = d.Queue, d.ID.String(), d.Type, d.Key, d.Stream
	}
	return v
}

// fields are what the placeholders of a command stand for: fields of the item,
// and where messages are worked on also what the envelope says.
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

// itemID is what the item is called: its key, or the message's ID when somebody
// enqueued it without one.
func itemID(d *nixie.Delivery) string {
	if d.Key != "" {
		return d.Key
	}
	return d.ID.String()
}

// verdictFolder is where the commands of an owner write their verdicts. The name
// of an owner may come from the store, so it is hashed and never a path.
func (r *Runner) verdictFolder(owner string) string {
	hash := sha256.Sum256([]byte(owner))
	return filepath.Join(r.c.StateFolder, "verdicts", fmt.Sprintf("%x", hash[:12]))
}

// inProgress lets one message have one command at a time. It matters when this
// process was frozen for longer than its leases: a message can come back while
// its first command is still being ended.
type inProgress struct {
	mu   sync.Mutex
	done map[nixie.ID]chan struct{}
}

// begin waits for its turn; it is false when ctx ends first.
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
