package loop

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Check looks at something that a [Group] reports with its health, such as a mailbox of dead
// letters: how much is there, and from where on that is too much.
type Check struct {
	Name string // required, unique in the group

	// Depth returns the depth, 0 or more, and its threshold, 1 or more. It has 1 s for each answer.
	// An error, a panic and no answer make the group unhealthy, and a depth at the threshold makes
	// it degraded. It is called once at a time; while a call does not return, no other is made.
	Depth func(ctx context.Context) (depth, threshold int, err error)
}

// Limits of the checks of a group.
const (
	MaxChecks   = 100
	checkWithin = time.Second
)

// DepthOf makes a check of a mailbox, by its approximate count.
func DepthOf(box interface {
	Name() string
	ApproximateCount(ctx context.Context) (int, error)
}, threshold int) Check {
	return Check{box.Name(), func(ctx context.Context) (int, int, error) {
		n, err := box.ApproximateCount(ctx)
		return n, threshold, err
	}}
}

// checking runs one check, once at a time. Requests that come meanwhile share the answer.
type checking struct {
	Check
	mu  sync.Mutex
	now *look // that runs
}

// look is one call of a check.
type look struct {
	over             chan struct{} // closed when it has returned
	depth, threshold int
	err              error
}

// checkings makes the checks of a group.
func checkings(list []Check) ([]*checking, error) {
	if len(list) > MaxChecks {
		return nil, invalid("group has %d checks: give up to %d", len(list), MaxChecks)
	}
	var all []*checking
	names := map[string]bool{}
	for i, c := range list {
		switch {
		case c.Depth == nil:
			return nil, invalid("check %d of the group has no function: set Depth", i)
		case names[c.Name]:
			return nil, invalid("two checks of the group have the name %s: give each its own", c.Name)
		}
		if err := checkName("check", c.Name); err != nil {
			return nil, err
		}
		names[c.Name] = true
		all = append(all, &checking{Check: c})
	}
	return all, nil
}

// answer returns the depth and its threshold, at the latest after checkWithin.
func (c *checking) answer(ctx context.Context) (depth, threshold int, err error) {
	ctx, stop := context.WithTimeout(ctx, checkWithin)
	defer stop()
	l := c.begin()
	select {
	case <-l.over:
		return l.depth, l.threshold, l.err
	case <-ctx.Done():
		return 0, 0, nixie.Errorf(nixie.CodeUnavailable, "no answer within %s", checkWithin)
	}
}

// begin begins a call of the check, unless one runs. The call ends by itself, or never: who asks
// does not wait for it longer than for an answer.
func (c *checking) begin() *look {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		return c.now
	}
	l := &look{over: make(chan struct{})}
	c.now = l
	go func() {
		ctx, stop := context.WithTimeout(context.Background(), checkWithin) // of no request, as others share it
		defer stop()
		_, l.err = try(func() (_ struct{}, err error) {
			l.depth, l.threshold, err = c.Depth(ctx)
			return struct{}{}, err
		})
		switch {
		case l.err != nil:
		case l.depth < 0:
			l.err = nixie.Errorf(nixie.CodeInvalid, "depth is %d: a check has to return 0 or more", l.depth)
		case l.threshold < 1:
			l.err = nixie.Errorf(nixie.CodeInvalid, "threshold is %d: a check has to return 1 or more", l.threshold)
		}
		c.mu.Lock()
		c.now = nil
		c.mu.Unlock()
		close(l.over)
	}()
	return l
}
