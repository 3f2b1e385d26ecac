package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Trial tells what the command did with the copy of a letter.
type Trial struct {
	Letter      nixie.Letter   // without its body
	Verb        nixie.Verb     // Complete: its message would succeed
	Failure     *nixie.Failure // nil also when the command gave the copy back, or discarded it
	Fingerprint string         // of the failure
	Same        bool           // the letter died of such a failure
}

// Try runs the command on copies of letters, as their next redrive would: with the policy of their
// queues, masks and deadlines. It claims nothing, spends no attempt and stores nothing. Read
// returns a letter whole. When ctx ends, the trials are those that were finished.
func (r *Runner) Try(
	ctx context.Context, letters []nixie.ID, read func(context.Context, nixie.ID) (nixie.Letter, error),
) ([]Trial, error) {
	end, err := r.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	r.decider.once = true
	r.total.Store(int64(len(letters)))
	r.count.remaining.Store(int64(len(letters)))
	c := &copies{
		kept: &source{Source: store.NewSource(r.store, r.c.Queues...), r: r}, letters: letters, read: read,
		out: map[*nixie.Delivery]original{}, left: len(letters), over: make(chan struct{}),
	}
	w, err := r.newWorker(c, nil, nil, 1)
	if err != nil {
		return nil, err
	}
	if err := r.runWorker(ctx, w, func(ctx context.Context, done context.CancelCauseFunc) {
		select {
		case <-c.over:
			done(nil)
		case <-ctx.Done():
		}
	}); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // what had not ended was given back
		c.trials = slices.DeleteFunc(c.trials, func(t Trial) bool { return t.Verb == nixie.Release })
	}
	return c.trials, r.whyHalted()
}

// copies is a source of copies of letters. It leaves the letters and their messages alone.
type copies struct {
	kept *source // knows the policies of the queues
	read func(context.Context, nixie.ID) (nixie.Letter, error)

	mu      sync.Mutex
	letters []nixie.ID // to be handed out
	out     map[*nixie.Delivery]original
	left    int // without an outcome
	trials  []Trial
	over    chan struct{} // closed when none is left
}

// original is a letter without its body, of which a copy is out.
type original struct {
	nixie.Letter
	diedOf string // fingerprint, as this build makes it
}

// Policies implements [lease.PolicyKeeper].
func (c *copies) Policies(ctx context.Context) (map[string]string, error) {
	return c.kept.Policies(ctx)
}

// Receive implements nixie.Source.
func (c *copies) Receive(ctx context.Context, want nixie.Want) (got []*nixie.Delivery, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(got) < want.Max && len(c.letters) > 0 {
		l, err := c.read(ctx, c.letters[0])
		if err != nil {
			c.kept.r.halt(err)
			return got, nil
		}
		c.letters = c.letters[1:]
		d := copyOf(&l, c.kept.r.c.Clock())
		d.Lease = nixie.Lease{Number: int64(max(l.Message.Deliveries, len(l.History)) + 1), Owner: c.kept.r.c.Owner}
		_, died := policy.GroupOf(&l)
		l.Message.Body, l.History = nil, nil
		c.out[d] = original{l, died}
		got = append(got, d)
	}
	if len(got) > 0 {
		return got, nil
	}
	wait := time.NewTimer(want.Wait)
	defer wait.Stop()
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return nil, nil
}

// copyOf makes the delivery that a worker would get first after a redrive of the letter.
func copyOf(l *nixie.Letter, now time.Time) *nixie.Delivery {
	m := l.Message
	m.Generation++
	m.Redrives++
	m.RedrivenAt = now
	m.Attempts, m.Deliveries, m.Crashes = 1, 1, 0
	m.Headers, m.Steps = slices.Clone(m.Headers), slices.Clone(m.Steps)
	return &nixie.Delivery{Message: m, Damage: l.Damage, FirstFailedAt: l.FirstFailedAt}
}

// Extend implements nixie.Source: no other worker can get a copy.
func (c *copies) Extend(_ context.Context, ds []*nixie.Delivery, _ time.Duration) []error {
	return make([]error, len(ds))
}

// Settle implements nixie.Source: it keeps the outcomes in memory.
func (c *copies) Settle(_ context.Context, settlements []nixie.Settlement) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range settlements {
		st := &settlements[i]
		l := c.out[st.Delivery]
		t := Trial{Letter: l.Letter, Verb: st.Verb, Failure: st.Failure}
		if t.Failure != nil {
			_, t.Fingerprint = policy.SignatureOf(t.Failure, &st.Delivery.Message)
			t.Same = t.Fingerprint == l.diedOf
		}
		c.trials = append(c.trials, t)
		if c.left--; c.left == 0 {
			close(c.over)
		}
	}
	return make([]error, len(settlements))
}
