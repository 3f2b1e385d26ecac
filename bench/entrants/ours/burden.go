package ours

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/policy"
)

// later is the due time of scheduled messages, after the end of the measurement.
const later = 24 * time.Hour

// Burden implements contest.Bearer.
func (l *library) Burden(ctx context.Context) error {
	waiting, dead := l.setup.Scenario.BurdenSizes(l.setup.Burden)
	var options []nixie.Option
	switch l.setup.Scenario {
	case contest.Blocked:
		options = append(options, nixie.Stream("blocked"))
	case contest.Scheduled:
		options = append(options, nixie.Delay(later))
	}
	burden := nixie.NewType[string]("burden", nixie.Queue(queue))
	one, err := burden.Message("It is part of the burden.", options...)
	if err != nil {
		return err
	}
	for left := waiting + dead; left > 0; left -= l.on.Batch {
		list := make([]nixie.Message, min(left, l.on.Batch))
		for i := range list {
			list[i] = one
		}
		if _, err := l.producer.Enqueue(ctx, list...); err != nil {
			return err
		}
	}
	if dead == 0 {
		return nil
	}
	return l.bury(ctx, dead)
}

// bury lets the first messages die.
func (l *library) bury(ctx context.Context, n int) error {
	list, err := l.store.Claim(ctx, queue, nixie.Want{Max: n})
	if err != nil {
		return err
	}
	if len(list) != n {
		return fmt.Errorf("%d messages were claimed, not %d", len(list), n)
	}
	settlements := make([]nixie.Settlement, n)
	for i, d := range list {
		f := l.decider.Diagnose(d, nixie.Permanent(errors.New("it has to block its stream")), policy.Attempt{})
		settlements[i] = l.decider.Policy.Decide(d, f, time.Now())
	}
	return errors.Join(l.store.Settle(ctx, settlements)...)
}

// Foreign implements contest.Bearer.
func (l *library) Foreign(ctx context.Context, list []contest.Task) (func() error, error) {
	if l.on.Foreign == nil {
		return nil, errors.New("this store knows no transactions of others")
	}
	messages, err := l.messages(list)
	if err != nil {
		return nil, err
	}
	return l.on.Foreign(ctx, l.setup, l.store, messages)
}
