package broker

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// Parked makes a source of the queue in which retries are parked. Its messages go on with the
// counts and steps that they had on the channel. From there on they, and their letters, belong to
// the store.
func Parked(queue nixie.Source) nixie.Source { return &parkedSource{queue} }

type parkedSource struct{ queue nixie.Source }

// Receive claims messages and adds the counts that they had before.
func (l *parkedSource) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	ds, err := l.queue.Receive(ctx, want)
	for _, d := range ds {
		addCounts(d, 1)
		goOn(d)
		before, _ := lease.ReadPatience(d.Header(HeaderPatience))
		goOnWith(&d.Patience, before)
		if steps := readSteps(d.Header(HeaderSteps)); len(steps) > 0 && len(d.Steps) == 0 {
			d.Steps = steps
		}
	}
	return ds, err
}

// Extend renews leases.
func (l *parkedSource) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return l.queue.Extend(ctx, ds, lease)
}

// Settle gives settlements to the store, with the counts that the store knows.
func (l *parkedSource) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	own := slices.Clone(sts)
	for i := range own {
		d := *sts[i].Delivery // a copy, because the worker may still read the delivery
		addCounts(&d, -1)
		own[i].Delivery = &d
		own[i].Failure, own[i].Second = ofStore(own[i].Failure, &d), ofStore(own[i].Second, &d)
	}
	return l.queue.Settle(ctx, own)
}

// LastFailure implements [lease.Historian] where the queue does.
func (l *parkedSource) LastFailure(ctx context.Context, d *nixie.Delivery) (*nixie.Failure, error) {
	if h, ok := l.queue.(lease.Historian); ok {
		return h.LastFailure(ctx, d)
	}
	return nil, nil
}

// addCounts adds the counts that a message had before it was parked; with sign −1 it subtracts
// them.
func addCounts(d *nixie.Delivery, sign int) {
	d.Attempts += sign * countOf(d, HeaderAttempts)
	d.Deliveries += sign * countOf(d, HeaderDeliveries)
	d.Crashes += sign * countOf(d, HeaderCrashes)
	redrives := sign * countOf(d, HeaderRedriveCount)
	d.Redrives, d.Generation = d.Redrives+redrives, d.Generation+redrives
}

// goOn adds the moments that a message knew before it was parked. Parking begins no new age.
func goOn(d *nixie.Delivery) {
	moment := func(name string) time.Time { return headerTime([]RecordHeader{{name, []byte(d.Header(name))}}, name) }
	if o := d.Origin; o != nil && !o.Timestamp.IsZero() && o.Timestamp.Before(d.EnqueuedAt) {
		d.EnqueuedAt = o.Timestamp
	}
	if d.RedrivenAt.IsZero() {
		d.RedrivenAt = moment(HeaderRedrivenAt)
	}
	if d.Operation.IsZero() {
		d.Operation = OperationOf([]RecordHeader{{HeaderOperation, []byte(d.Header(HeaderOperation))}})
	}
	if first := moment(HeaderFirstFailureAt); !first.IsZero() {
		d.FirstFailedAt = first
	}
}

// ofStore returns a failure with the generation that the store knows.
func ofStore(f *nixie.Failure, d *nixie.Delivery) *nixie.Failure {
	if f == nil || f.Generation == d.Generation {
		return f
	}
	own := *f
	own.Generation = d.Generation
	return &own
}

func countOf(d *nixie.Delivery, name string) int {
	n, err := strconv.Atoi(d.Header(name))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, maxCount)
}
