package worker

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// receiveLoop keeps enough work in hand until ctx ends.
func (w *Worker) receiveLoop(ctx context.Context) {
	stopWaiting := context.AfterFunc(ctx, w.notifyChange)
	defer stopWaiting()
	pause, connected, receives := firstPause, connection{c: &w.c}, 0
	for {
		want := w.want(ctx)
		if ctx.Err() != nil {
			return
		}
		asked := w.since(w.c.Clock())
		got, err := w.receive(ctx, want)
		if err == nil {
			w.c.events.over(receiving)
			connected.is(true)
			if len(got) > 0 || want.Wait == 0 || want.Wait >= w.Wait() { // not a short look while the last items run
				receives++
			}
		}
		if len(got) > 0 {
			w.take(ctx, got, asked)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, nixie.ErrClosed):
			w.sourceClosed(err)
			return
		case err != nil:
			w.c.trouble(receiving, err)
			connected.is(false)
			sleep(ctx, pause)
			pause = min(2*pause, maxPause)
		case w.c.Until.holds(receives, w.nothingLeft(got, &want)):
			w.endWhenEmpty(ctx)
			return
		case len(got) == 0:
			w.haltIdle(asked)
			pause = firstPause
			sleep(ctx, idleGap-(w.since(w.c.Clock())-asked))
		default:
			pause = firstPause
		}
	}
}

// nothingLeft reports whether an answer of the source means that nothing is left: nothing was in
// hand, which would hold suspects back, and no breaker holds messages back.
func (w *Worker) nothingLeft(got []*nixie.Delivery, want *nixie.Want) bool {
	return len(got) == 0 && !want.NoSuspects && len(w.breakers.open()) == 0
}

// endWhenEmpty ends Run when nothing is in hand.
func (w *Worker) endWhenEmpty(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inHand > 0 && ctx.Err() == nil {
		w.rest()
	}
	w.endRun(nil)
}

// beat tells that the receiver goes on, unless a call of the source that settles or renews has not
// ended in its time.
func (w *Worker) beat() {
	if w.c.Beat != nil && !w.overdue(&w.settling) && !w.overdue(&w.renewing) {
		w.c.Beat()
	}
}

func (w *Worker) overdue(call *atomic.Int64) bool {
	end := call.Load()
	return end != 0 && int64(w.now()) > end
}

// limited returns a context for a call of the source, and notes in at when that has to end.
func (w *Worker) limited(ctx context.Context, at *atomic.Int64, limit time.Duration) (call context.Context, ended func()) {
	at.Store(int64(w.now() + limit))
	call, cancel := context.WithTimeout(ctx, limit)
	return call, func() {
		cancel()
		at.Store(0)
	}
}

// rest is a wait of the receiver for a change. The caller holds the worker's mutex.
func (w *Worker) rest() {
	w.beat()
	w.awaitChange(0)
}

// connection tells the observer whether the source answers, once for each change.
type connection struct {
	c         *Config
	known, up bool
}

func (n *connection) is(up bool) {
	if !n.known || n.up != up {
		n.known, n.up = true, up
		n.c.Observer.Connected(n.c.Queue, up)
	}
}

// want waits until enough deliveries are settled, and returns how many to ask for. While suspects
// are in hand it asks for nothing, and while others are it asks for no suspects.
func (w *Worker) want(ctx context.Context) nixie.Want {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		limit := w.prefetch.limit()
		allowed, wait := w.breakers.room(w.c.Clock())
		if allowed >= 0 {
			limit = min(limit, allowed)
		}
		room := limit - w.inHand
		if w.suspects > 0 && ctx.Err() == nil {
			w.rest()
			continue
		}
		w.beat()
		if room >= max(1, min(limit/2, limit-w.c.Concurrency)) || ctx.Err() != nil {
			return nixie.Want{
				Max:         max(1, room),
				Wait:        w.waitNow(),
				Lease:       w.c.Lease,
				LogProgress: w.c.ProgressLog != nil,
				NoSuspects:  w.inHand > 0,

				Parallel: w.c.Concurrency,
			}
		}
		w.awaitChange(wait)
	}
}

// Wait returns the longest time for which a receive waits for work. A receive waits only for a
// small part of the lease that it brings.
func (w *Worker) Wait() time.Duration {
	wait := pollWait
	if s, ok := w.c.Source.(lease.Listener); ok {
		wait = cmp.Or(s.Patience(), pollWait)
	}
	return min(wait, w.c.Lease/pauseParts)
}

// waitNow returns how long the next receive waits for work. With Until.Idle a worker does not wait
// for more once it has nothing in hand, and until then it looks often whether that is so. The
// caller holds the worker's mutex.
func (w *Worker) waitNow() time.Duration {
	if _, tells := w.c.Source.(lease.Listener); !w.c.Until.Idle || !tells {
		return w.Wait() // a broker may have work, and need a moment to bring it
	}
	switch {
	case w.inHand > 0:
		return min(w.Wait(), drainWait)
	case len(w.breakers.open()) > 0:
		return w.Wait()
	}
	return 0
}

// awaitChange waits for a change of the deliveries in hand, at most for the time that the breakers
// gave; 0 is for ever. With Beat it ends after Wait too. The caller holds the worker's mutex.
func (w *Worker) awaitChange(most time.Duration) {
	if w.c.Beat != nil && (most <= 0 || most > w.Wait()) {
		most = w.Wait()
	}
	if most > 0 {
		timer := time.AfterFunc(most, w.notifyChange)
		defer timer.Stop()
	}
	w.changed.Wait()
}

// notifyChange wakes the goroutines that wait for a change.
func (w *Worker) notifyChange() {
	w.mu.Lock()
	w.changed.Broadcast()
	w.mu.Unlock()
}

// receive asks the source. If suspects may wait until nothing is in hand, it ends a call that asks
// for others at that moment.
func (w *Worker) receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	asking, cancel := context.WithTimeout(ctx, want.Wait+callLimit)
	defer cancel()
	if want.NoSuspects && w.suspectsWait {
		w.callWhenEmpty(cancel)
		defer w.callWhenEmpty(nil)
	}
	got, err := w.c.receive(asking, want)
	if err != nil && want.NoSuspects && errors.Is(asking.Err(), context.Canceled) && ctx.Err() == nil {
		err = nil // callWhenEmpty ended it
	}
	w.suspectsWait = w.suspectsWait && want.NoSuspects
	return got, err
}

// callWhenEmpty calls f as soon as nothing is in hand; nil removes the last f.
func (w *Worker) callWhenEmpty(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onEmpty = f; f != nil && w.inHand == 0 {
		f()
	}
}

// receive asks the source, when the policies are known: without them the worker could not decide
// about a delivery.
func (c *Config) receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if err := c.learnPolicies(ctx); err != nil {
		return nil, err
	}
	got, err := c.Source.Receive(ctx, want)
	c.refreshPolicies(ctx, got)
	return got, err
}

// exchange settles and receives, in one call where the source can do so.
func (c *Config) exchange(ctx context.Context, sts []nixie.Settlement, want nixie.Want) ([]error, []*nixie.Delivery, error) {
	source, ok := c.Source.(lease.Exchanger)
	if !ok || len(sts) == 0 || c.learnPolicies(ctx) != nil {
		errs := c.settle(ctx, sts)
		got, err := c.receive(ctx, want)
		return errs, got, err
	}
	errs, got, err := source.Exchange(ctx, sts, want)
	errs = c.settled(sts, errs)
	c.refreshPolicies(ctx, got)
	return errs, got, err
}

// learnPolicies reads the policies unless they are known.
func (c *Config) learnPolicies(ctx context.Context) error {
	if c.policies.known() {
		return nil
	}
	if err := c.policies.refresh(ctx); !c.policies.known() {
		return err
	}
	return nil
}

// refreshPolicies reads the policies again if it is time and something was received.
func (c *Config) refreshPolicies(ctx context.Context, got []*nixie.Delivery) {
	if len(got) == 0 {
		return
	}
	if bad := c.policies.refresh(ctx); bad != nil {
		c.trouble(policyLookup, bad)
	} else {
		c.events.over(policyLookup)
	}
}

// take takes deliveries in hand, settles those that must not run and offers the others to the
// handlers. It waits until the former are settled: the next receive may bring them again, before
// other messages.
func (w *Worker) take(ctx context.Context, got []*nixie.Delivery, asked time.Duration) {
	w.c.Observer.Received(w.c.Queue, got)
	w.breakers.received(got)
	now := w.c.Clock()
	b := newBatch(w, got, w.prefetch.chunkSize(len(got)), now, asked+w.c.Lease)
	judged := w.judge(ctx, b, now)
	added := w.add(b)
	w.wakeWatchdog()
	if !added {
		w.c.trouble(unexpected, nixie.Errorf(nixie.CodeConflict,
			"source returned %d deliveries after the worker had ended: they come again when their leases end", len(got)))
		return
	}
	for i, r := range judged.runs {
		w.post(&w.shards[0], r, &judged.settlements[i])
	}
	if b.crashes > 0 { // the source may have brought others with the suspects
		w.awaitOthers(ctx, b)
		w.dispatch(ctx, b, lease.GroupSize(w.c.Concurrency, b.crashes))
		return
	}
	if len(judged.runs) < b.size {
		w.dispatch(ctx, b, w.c.Concurrency)
	}
	for _, r := range judged.runs {
		w.suspectsWait = w.suspectsWait || r.d.Abandoned
		if !w.awaitSettled(r, w.rest) {
			return
		}
	}
}

// judge decides about the deliveries of a new batch that must not run.
func (w *Worker) judge(ctx context.Context, b *batch, now time.Time) (judged outbox) {
	for r := range b.all() {
		if st, ok := w.c.judge(ctx, r.d, now); ok {
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
			return // drain releases the runs that have not started
		}
		select {
		case w.work <- b:
		default:
			w.offer(ctx, b)
		}
	}
}

// offer waits until a goroutine takes the batch, which may be as long as a handler runs.
func (w *Worker) offer(ctx context.Context, b *batch) {
	tick := time.NewTicker(w.Wait())
	defer tick.Stop()
	for {
		w.beat()
		select {
		case w.work <- b:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awaitOthers waits until only this batch is in hand.
func (w *Worker) awaitOthers(ctx context.Context, b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.inHand > b.open && ctx.Err() == nil {
		w.rest()
	}
}

// sleep waits for d and reports whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
