package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adjust implements store.Overview.
func (e *Engine) Adjust(
	ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error,
) (nixie.QueueSettings, error) {
	var settings nixie.QueueSettings
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return settings, err
	}
	err := e.driver.Update(ctx, How{}, func(tx Tx) error {
		facts, err := tx.Load(&Want{Adjust: queue})
		if err != nil {
			return err
		}
		q := facts.Queues[queue]
		settings = *q.Settings
		if err := edit(&settings); err != nil {
			return err
		}
		if err := settings.Check(); err != nil {
			return err
		}
		if !q.Made && *q.Settings == settings {
			return nil
		}
		if err := refuseNotices(tx, queue, &settings); err != nil {
			return err
		}
		if err := tx.Reorder(q, &settings); err != nil {
			return err
		}
		*q.Settings = settings
		c := call{Facts: facts}
		c.changes.Adjusted = q
		c.record(q.Number, store.AuditEntry{Actor: actor, Event: store.OnConfigure, Reason: reason})
		if !settings.Paused {
			c.changes.Wakes = append(c.changes.Wakes, q.Name)
		}
		return tx.Write(&c.changes)
	})
	return settings, err
}

// refuseNotices reads the settings of the other queues, if it needs them, and asks
// [lifecycle.RefuseNotices].
func refuseNotices(tx Tx, queue string, set *nixie.QueueSettings) error {
	if set.DeadLetterTo == "" && !set.Closed {
		return nil
	}
	others, err := tx.Load(&Want{Others: queue})
	if err != nil {
		return err
	}
	return lifecycle.RefuseNotices(queue, set, others.Others)
}

// Tried implements Tried of store.Features.
func (e *Engine) Tried(ctx context.Context, queue, actor, reason string) error {
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return err
	}
	return e.driver.Update(ctx, How{}, func(tx Tx) error {
		facts, err := tx.Load(&Want{Queue: queue})
		if err != nil {
			return err
		}
		q := facts.Queues[queue]
		if q == nil {
			return nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", queue)
		}
		c := call{Facts: facts}
		c.record(q.Number, store.AuditEntry{Actor: actor, Event: store.OnTry, Reason: reason})
		return tx.Write(&c.changes)
	})
}
