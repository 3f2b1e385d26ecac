package broker

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// Parked makes a source of the queue in which retries are parked: its messages go
// on counting where the channel ended, and have the steps that were done by then.
// From there on they belong to the store, and so do their letters.
func Parked(queue nixie.Source) nixie.Source { return &lot{queue} }

type lot struct{ queue nixie.Source }

// Receive claims, and adds what was counted before.
func (l *lot) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	ds, err := l.queue.Receive(ctx, want)
	for _, d := range ds {
		counted(d, 1)
		if steps := readSteps(d.Header(HeaderSteps)); len(steps) > 0 && len(d.Steps) == 0 {
			d.Steps = steps
		}
	}
	return ds, err
}

// Extend renews leases.
func (l *lot) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return l.queue.Extend(ctx, ds, lease)
}

// Settle gives decisions to the store, which knows its own counts only.
func (l *lot) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	own := slices.Clone(sts)
	for i := range own {
		d := *sts[i].Delivery // a copy, as its worker may look at it meanwhile
		counted(&d, -1)
		own[i].Delivery = &d
	}
	return l.queue.Settle(ctx, own)
}

// counted adds, or takes away, what was counted before a message was parked.
func counted(d *nixie.Delivery, sign int) {
	d.Attempts += sign * counter(d, HeaderAttempts)
	d.Deliveries += sign * counter(d, HeaderDeliveries)
	d.Crashes += sign * counter(d, HeaderCrashes)
}

func counter(d *nixie.Delivery, name string) int {
	n, err := strconv.Atoi(d.Header(name))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, maxCount)
}
