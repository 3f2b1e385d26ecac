package worker

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// receiveLoop keeps enough work in hand until ctx ends.
func (w *Worker) receiveLoop(ctx context.Context) {
	stopWaiting := context.AfterFunc(ctx, w.announce)
	defer stopWaiting()
	pause := firstPause
	for {
		want := w.want(ctx)
		if ctx.Err() != nil {
			return
		}
		asked := w.since(w.c.Clock())
		got, err := w.receive(ctx, want)
		if err == nil {
			w.c.journal.over(receiving)
		}
		if len(got) > 0 {
			w.take(ctx, got, asked)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, nixie.ErrClosed):
			w.gone(err)
			return
		case err != nil:
			w.c.trouble(receiving, err)
			sleep(ctx, pause)
			pause = min(2*pause, maxPause)
		case len(got) == 0:
			pause = firstPause
			sleep(ctx, idleGap-(w.since(w.c.Clock())-asked))
		default:
			pause = firstPause
		}
	}
}

// want waits until enough of what is in hand is settled and says how much more
// may be asked for: nothing beside suspects, and no suspects beside others. A receive
// never waits long enough to use up much of the lease that it brings.
func (w *Worker) want(ctx context.Context) nixie.Want {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		limit := w.speed.limit()
		allowed, wait := w.circuits.room(w.c.Clock())
		if allowed >= 0 {
			limit = min(limit, allowed)
		}
		room := limit - w.inHand
		if w.suspects > 0 && ctx.Err() == nil {
			w.awaitChange(0)
			continue
		}
		if room >= max(1, min(limit/2, limit-w.c.Concurrency)) || ctx.Err() != nil {
			return nixie.Want{
				Max:         max(1, room),
				Wait:        min(pollWait, w.c.Lease/hurry),
				Lease:       w.c.Lease,
				LogProgress: w.c.ProgressLog != nil,
				NoSuspects:  w.inHand > 0,

				Parallel: w.c.Concurrency,
			}
		}
		w.awaitChange(wait)
	}
}

// awaitChange waits until something in hand has changed, or for as long as the
// breakers say; 0 is for ever. The worker's mutex is held.
func (w *Worker) awaitChange(most time.Duration) {
	if most > 0 {
		timer := time.AfterFunc(most, w.announce)
		defer timer.Stop()
	}
	w.changed.Wait()
}

// announce wakes whoever waits for a change.
func (w *Worker) announce() {
	w.mu.Lock()
	w.changed.Broadcast()
	w.mu.Unlock()
}

// receive asks the source. Where suspects may wait for an empty hand, it does not ask for
// others any longer than the hand is full.
func (w *Worker) receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	asking, cancel := context.WithTimeout(ctx, want.Wait+callLimit)
	defer cancel()
	if want.NoSuspects && w.wary {
		w.whenEmpty(cancel)
		defer w.whenEmpty(nil)
	}
	got, err := w.c.receive(asking, want)
	if err != nil && want.NoSuspects && errors.Is(asking.Err(), context.Canceled) && ctx.Err() == nil {
		err = nil // we ended it
	}
	w.wary = w.wary && want.NoSuspects
	return got, err
}

// whenEmpty has f called as soon as nothing is in hand; nil is nobody.
func (w *Worker) whenEmpty(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.emptied = f; f != nil && w.inHand == 0 {
		f()
	}
}

// receive receives under policies that are known. Nothing is received before they
// are, as nobody could say what becomes of it.
func (c *Config) receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if !c.rules.known() {
		if err := c.rules.look(ctx); err != nil && !c.rules.known() {
			return nil, err
		}
	}
	got, err := c.Source.Receive(ctx, want)
	if len(got) == 0 {
		return got, err
	}
	if bad := c.rules.look(ctx); bad != nil {
		c.trouble(ruling, bad)
	} else {
		c.journal.over(ruling)
	}
	return got, err
}

// take puts what was received in hand, settles what must not be run and offers
// the rest to the handlers. It waits until what was judged is settled: that may be
// what the next receive brings, before anything fresh.
func (w *Worker) take(ctx context.Context, got []*nixie.Delivery, asked time.Duration) {
	w.c.Observer.OnReceived(w.c.Queue, got)
	w.circuits.received(got)
	now := w.c.Clock()
	b := newBatch(w, got, w.speed.stretch(len(got)), now, asked+w.c.Lease)
	judged := w.judge(b, now)
	if !w.add(b) {
		w.c.trouble(failing, nixie.Errorf(nixie.CodeConflict,
			"source returned %d deliveries after the worker had ended: they come again when their leases end", len(got)))
		return
	}
	for i, r := range judged.runs {
		w.post(&w.trays[0], r, &judged.settlements[i])
	}
	if b.crashes > 0 { // also where the source knows no groups and brought others with them
		w.awaitOthers(ctx, b)
		w.dispatch(ctx, b, lease.GroupSize(w.c.Concurrency, b.crashes))
		return
	}
	if len(judged.runs) < b.size {
		w.dispatch(ctx, b, w.c.Concurrency)
	}
	for _, r := range judged.runs {
		w.wary = w.wary || r.d.Abandoned
		if !w.awaitSettled(r) {
			return
		}
	}
}

// judge decides about those of a new batch that must not be run.
func (w *Worker) judge(b *batch, now time.Time) (judged outbox) {
	for r := range b.all() {
		if st, ok := w.c.judge(r.d, now); ok {
			r.state.Store(deciding)
			r.end(context.Canceled, w.since(now))
			judged.add(r, &st)
		} else if r.d.Crashes > 0 {
			r.suspect = true
			b.crashes = max(b.crashes, r.d.Crashes)
		}
	}
	return judged
}

// add puts a batch in hand, unless it is too late for that.
func (w *Worker) add(b *batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.inHand += b.size
	for r := range b.all() {
		if r.suspect {
			w.suspects++
		}
	}
	w.batches = append(w.batches, b)
	return true
}

// dispatch offers the batch to as many goroutines as can use it.
func (w *Worker) dispatch(ctx context.Context, b *batch, most int) {
	for range min(most, b.size) {
		if ctx.Err() != nil {
			return // drain releases what nobody started
		}
		select {
		case w.work <- b:
		case <-ctx.Done():
		}
	}
}

// awaitOthers waits until nothing is in hand but a batch.
func (w *Worker) awaitOthers(ctx context.Context, b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inHand > b.open && ctx.Err() == nil {
		w.changed.Wait()
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
