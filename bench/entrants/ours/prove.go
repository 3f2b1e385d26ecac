package ours

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/store"
)

func (l *library) info(ctx context.Context) (store.QueueInfo, error) {
	list, err := l.store.Queues(ctx, store.QueueQuery{})
	switch {
	case err != nil:
		return store.QueueInfo{}, err
	case len(list) != 1:
		return store.QueueInfo{}, fmt.Errorf("%d queues, not 1", len(list))
	}
	return list[0], nil
}

// Left asks the store only when the worker has no message. An overview of a busy queue is work that
// the measurement should not include.
func (l *library) Left(ctx context.Context) (int, error) {
	if n := l.inHand.Load(); n > 0 {
		return int(n), nil
	}
	if l.setup.Scenario.Asks() {
		return l.unfinished(ctx)
	}
	q, err := l.info(ctx)
	burden, _ := l.setup.Scenario.BurdenSizes(l.setup.Burden)
	return int(q.Ready+q.Blocked+q.Scheduled+q.Leased) - burden, err
}

func (l *library) Dead(ctx context.Context) (int, error) {
	q, err := l.info(ctx)
	_, burden := l.setup.Scenario.BurdenSizes(l.setup.Burden)
	return int(q.Dead) - burden, err
}

func (l *library) Each(ctx context.Context, yield func(contest.Task) error) error {
	return l.pages(ctx, store.Page{Whole: true}, func(r *store.Record) error {
		t, err := contest.Decode(r.Body)
		if err != nil {
			return err
		}
		return yield(t)
	})
}

// pages yields every message of the store.
func (l *library) pages(ctx context.Context, page store.Page, yield func(*store.Record) error) error {
	for page.Limit = 1000; ; {
		list, next, err := l.store.Messages(ctx, nixie.Filter{Types: []string{l.kind.Name()}}, page)
		if err != nil {
			return err
		}
		for i := range list {
			if err := yield(&list[i]); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		page.Cursor = next
	}
}

// Prove implements contest.Prover. The store has one record of each message with its end and its
// attempts, and the policy decided about each run. Tasks reach the ledger only through their type,
// so all were decoded.
func (l *library) Prove(ctx context.Context, s contest.Scenario, n int) error {
	dead := s.Dead(n)
	if got, want := l.decider.decisions.Load(), int64(n*s.Runs()); got != want {
		return fmt.Errorf("%d decisions, not %d", got, want)
	}
	ends := map[nixie.State]int{}
	ids := make(map[nixie.ID]bool, n)
	err := l.pages(ctx, store.Page{}, func(r *store.Record) error {
		if r.Attempts != s.Runs() || r.EndedAt.IsZero() {
			return fmt.Errorf("message %s is %s after %d attempts, not %d", r.ID, r.State, r.Attempts, s.Runs())
		}
		ids[r.ID] = true
		ends[r.State]++
		return nil
	})
	if err != nil {
		return err
	}
	if len(ids) != n || ends[nixie.Succeeded] != n-dead || ends[nixie.Dead] != dead {
		return fmt.Errorf("%d messages in the log, which ended %v: not %d, %d of them dead", len(ids), ends, n, dead)
	}
	return nil
}
