package engine

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Purge implements store.Overview.
func (e *Engine) Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error) {
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return 0, err
	}
	most = min(max(most, 0), nixie.MaxBatch)
	n := 0
	err := e.driver.Update(ctx, How{}, func(tx Tx) error {
		n = 0
		facts, err := tx.Load(&Want{Queue: queue})
		if err != nil {
			return err
		}
		q := facts.Queues[queue]
		if q == nil {
			return nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", queue)
		}
		if facts, err = tx.Load(&Want{Queued: &Queued{q, &filter, most}}); err != nil {
			return err
		}
		p := ending{call: call{Facts: facts}, tx: tx}
		for _, id := range facts.Found {
			m := facts.Messages[id]
			if m == nil || m.Public() != nixie.Queued || m.Queue.Number != q.Number {
				continue // another call was faster
			}
			if err := m.damage(); err != nil {
				return err
			}
			if err := p.cancel(m, &store.Change{Verb: store.Cancel, Actor: actor, Reason: reason}); err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return nil
		}
		p.record(q.Number, store.AuditEntry{Actor: actor, Event: store.OnPurge, Reason: fmt.Sprintf("%d canceled: %s", n, reason)})
		return p.write()
	})
	return n, err
}
