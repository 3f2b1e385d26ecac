package serve

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// How long answers of the store are kept, and how long one may take.
const (
	checkFor    = time.Second
	numbersFor  = 5 * time.Second
	answerLimit = 2 * time.Second
)

// answer keeps the last answer to a question. One call of ask runs at a time, so that a store that
// hangs collects no goroutines.
type answer[T any] struct {
	ask    func(context.Context) (T, error)
	keep   time.Duration
	clock  func() time.Time
	within context.Context // of all calls; it ends with the server

	mu    sync.Mutex
	asked chan struct{} // is closed when the call that runs has ended; nil: none runs
	at    time.Time     // of the last answer
	last  T
	err   error
}

// get returns the last answer while it is fresh, or asks.
func (a *answer[T]) get(ctx context.Context) (T, error) {
	a.mu.Lock()
	if a.asked == nil && !a.at.IsZero() && a.clock().Sub(a.at) < a.keep {
		defer a.mu.Unlock()
		return a.last, a.err
	}
	if a.asked == nil {
		a.asked = make(chan struct{})
		go a.run() // Run waits for it; the context of this request is not its own
	}
	asked := a.asked
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	select {
	case <-asked:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.last, a.err
	case <-ctx.Done():
		var none T
		return none, nixie.Errorf(nixie.CodeUnavailable, "no answer within %s", answerLimit)
	}
}

func (a *answer[T]) run() {
	ctx, cancel := context.WithTimeout(a.within, answerLimit)
	defer cancel()
	last, err := a.ask(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.err, a.at = last, err, a.clock()
	close(a.asked)
	a.asked = nil
}

// wait waits until no call runs, or ctx ends.
func (a *answer[T]) wait(ctx context.Context) {
	a.mu.Lock()
	asked := a.asked
	a.mu.Unlock()
	if asked == nil {
		return
	}
	select {
	case <-asked:
	case <-ctx.Done():
	}
}
