package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// Within runs a call inside a transaction of the caller: whole, or it changes nothing. It runs no
// call again: after a race the caller begins a new transaction. It has the verbs of [store.Tx].
type Within func(ctx context.Context, how How, f func(Tx) error) error

// Complete implements store.Tx.
func (w Within) Complete(ctx context.Context, d *nixie.Delivery) error {
	if d == nil {
		return missing()
	}
	list := []nixie.Settlement{{Delivery: d, Verb: nixie.Complete, Then: d.Tracking.Then}}
	if err := store.CheckSettlement(&list[0]); err != nil {
		return err
	}
	return w(ctx, How{Ends: true}, func(tx Tx) error {
		tx.After(func() { lease.MarkCompleted(d) })
		errs := make([]error, 1)
		return cmp.Or(Settle(tx, list, errs), errs[0])
	})
}

// Once implements store.Tx.
func (w Within) Once(ctx context.Context, scope, key string) (first bool, err error) {
	for _, f := range [...]struct{ what, value string }{{"inbox scope", scope}, {"inbox key", key}} {
		if f.value == "" {
			return false, nixie.Errorf(nixie.CodeInvalid, "%s is empty: name what is to happen once", f.what)
		}
		if err := nixie.CheckName(f.what, f.value); err != nil {
			return false, err
		}
	}
	err = w(ctx, How{}, func(tx Tx) (err error) {
		first, err = tx.Remember(scope, key)
		return err
	})
	return first && err == nil, err
}

// forgetPart limits the keys that one transaction forgets, so that other calls run in between.
const forgetPart = 10_000

// PruneInbox forgets the keys that Once of a [store.Tx] got at least olderThan ago, and returns
// their number. Use it to forget keys sooner than Prune does. olderThan has to be longer than a
// message can come again: by retries, by a redrive, and by repeated deliveries of a broker.
func (e *Engine) PruneInbox(ctx context.Context, olderThan time.Duration) (pruned int64, err error) {
	if olderThan < 0 {
		return 0, nixie.Errorf(nixie.CodeInvalid, "inbox age is %s: give one from 0", olderThan)
	}
	for part := forgetPart; part == forgetPart; pruned += int64(part) {
		err := e.driver.Update(ctx, How{}, func(tx Tx) error {
			facts, err := tx.Load(&Want{})
			if err != nil {
				return err
			}
			part, err = tx.Forget(facts.Now-int64(olderThan), forgetPart)
			return err
		})
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}
