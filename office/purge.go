package office

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// purgeStep is the number of messages that one transaction of a purge cancels.
const purgeStep = 1_000

// PurgeRequest asks to cancel the queued messages of a queue.
type PurgeRequest struct {
	Queue    string
	Filter   nixie.Filter // of the queued ones; the zero filter matches all
	Reason   string       // required
	Progress func(PurgeView)
}

// PurgeView counts the messages of a purge. Queue purge prints it.
type PurgeView struct {
	Queue    string `json:"queue"`
	DryRun   bool   `json:"dry_run"`
	Canceled int64  `json:"canceled"` // or would be
	Leased   int64  `json:"leased"`   // claimed ones, which a purge leaves
}

// check refuses a filter of other queues or states.
func (p *PurgeRequest) check() error {
	if len(p.Filter.Queues) > 0 || len(p.Filter.States) > 0 {
		return nixie.Errorf(nixie.CodeInvalid, "a purge is of the queued messages of one queue: leave queue: and state: out of the filter")
	}
	return nil
}

// PreviewPurge counts what Purge would cancel now.
func (o *Office) PreviewPurge(ctx context.Context, p *PurgeRequest) (PurgeView, error) {
	v := PurgeView{Queue: p.Queue, DryRun: true}
	if err := p.check(); err != nil {
		return v, err
	}
	q, err := o.Queue(ctx, p.Queue)
	if err != nil {
		return v, err
	}
	v.Leased = q.Leased
	if p.Filter.IsZero() {
		v.Canceled = q.Unfinished() - q.Leased
		return v, nil
	}
	f := p.Filter
	f.Queues, f.States = []string{p.Queue}, []nixie.State{nixie.Queued}
	for _, err := range o.AllMessages(ctx, f) {
		if err != nil {
			return v, err
		}
		v.Canceled++
	}
	return v, nil
}

// Purge cancels the queued messages of a queue, never leased ones. One transaction cancels a
// thousand, each with an entry in the audit. When ctx ends it returns the counts so far.
func (o *Office) Purge(ctx context.Context, p *PurgeRequest) (PurgeView, error) {
	v := PurgeView{Queue: p.Queue}
	if err := p.check(); err != nil {
		return v, err
	}
	if err := checkReason(p.Reason); err != nil {
		return v, err
	}
	if _, err := o.Queue(ctx, p.Queue); err != nil {
		return v, err
	}
	for {
		n, err := o.store.Purge(ctx, p.Queue, p.Filter, purgeStep, o.actor, p.Reason)
		if err != nil {
			return v, err
		}
		v.Canceled += int64(n)
		if p.Progress != nil {
			p.Progress(v)
		}
		if n < purgeStep {
			break
		}
	}
	q, err := o.Queue(ctx, p.Queue)
	v.Leased = q.Leased
	return v, err
}

// drainEvery is the time between two polls of a drain.
const drainEvery = 500 * time.Millisecond

// DrainRequest asks to close a queue and to wait until it is empty.
type DrainRequest struct {
	Queue    string
	Reason   string        // required
	DueOnly  bool          // do not wait for scheduled messages
	Timeout  time.Duration // of the wait; 0 means none
	Wait     func(ctx context.Context, d time.Duration) error
	Progress func(DrainView)
}

// DrainView counts the messages that a drain waits for. Queue drain prints it.
type DrainView struct {
	Queue     string    `json:"queue"`
	Drained   bool      `json:"drained"`
	Ready     int64     `json:"ready"`
	Blocked   int64     `json:"blocked"`
	Scheduled int64     `json:"scheduled"`
	Leased    int64     `json:"leased"`
	NextAt    Timestamp `json:"next_at"` // earliest time of a scheduled one
}

// left counts the messages that the drain waits for.
func (v *DrainView) left(dueOnly bool) int64 {
	n := v.Ready + v.Blocked + v.Leased
	if !dueOnly {
		n += v.Scheduled
	}
	return n
}

// CloseQueue closes a queue to new messages until Resume, and waits for nothing. It refuses a
// paused queue, which would never be empty.
func (o *Office) CloseQueue(ctx context.Context, queue, reason string) error {
	if _, err := o.Queue(ctx, queue); err != nil {
		return err
	}
	_, err := o.adjust(ctx, queue, "drain: "+reason, reason, func(q *nixie.QueueSettings) error {
		if q.Paused {
			return pausedDrain(queue, q.PausedNote)
		}
		if !q.Closed {
			q.Closed, q.ClosedNote = true, o.note(reason)
		}
		return nil
	})
	return err
}

// Drain closes a queue to new messages and waits until its workers have finished all messages in
// it, also scheduled ones and retries unless DueOnly. The queue stays closed until Resume. The
// timeout is no error: the view counts the messages left. Drain refuses a paused queue, which would
// never be empty.
func (o *Office) Drain(ctx context.Context, d *DrainRequest) (DrainView, error) {
	if err := o.CloseQueue(ctx, d.Queue, d.Reason); err != nil {
		return DrainView{}, err
	}
	wait := d.Wait
	if wait == nil {
		wait = sleep
	}
	for waited := time.Duration(0); ; waited += drainEvery {
		q, err := o.Queue(ctx, d.Queue)
		if err != nil {
			return DrainView{}, err
		}
		v := DrainView{Queue: q.Name, Ready: q.Ready, Blocked: q.Blocked, Scheduled: q.Scheduled, Leased: q.Leased,
			NextAt: Timestamp{q.NextAt}}
		v.Drained = v.left(d.DueOnly) == 0
		switch {
		case v.Drained || d.Timeout > 0 && waited >= d.Timeout:
			return v, nil
		case q.Settings.Paused:
			return v, pausedDrain(d.Queue, q.Settings.PausedNote)
		}
		if d.Progress != nil {
			d.Progress(v)
		}
		if err := wait(ctx, drainEvery); err != nil {
			return v, err
		}
	}
}

func pausedDrain(queue, why string) error {
	return nixie.Errorf(nixie.CodeConflict, "queue %s is paused (%s), so nothing leaves it: resume it first", queue, why)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
