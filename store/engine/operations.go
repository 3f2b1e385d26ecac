package engine

import (
	"context"
	"math"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Plan implements store.Operations.
func (e *Engine) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, limit int) (store.Operation, error) {
	if !op.ID.IsZero() {
		return e.planAgain(ctx, op.ID)
	}
	if err := store.CheckPlan(&op, limit); err != nil {
		return op, err
	}
	if limit == 0 {
		limit = math.MaxInt32
	}
	var planned store.Operation
	err := e.driver.Update(ctx, How{}, func(tx Tx) error {
		facts, err := tx.Load(&Want{})
		if err != nil {
			return err
		}
		planned = op
		planned.CreatedAt = lifecycle.Moment(facts.Now)
		planned.ID = e.ids.New(planned.CreatedAt)
		planned.Selected, err = tx.Select(&planned, &filter, limit)
		planned.Pending = planned.Selected
		return err
	})
	return planned, err
}

// planAgain makes items pending again whose letters died again.
func (e *Engine) planAgain(ctx context.Context, id nixie.ID) (store.Operation, error) {
	if err := e.driver.Update(ctx, How{}, func(tx Tx) error { return tx.SelectAgain(id) }); err != nil {
		return store.Operation{}, err
	}
	return store.FindOperation(ctx, e.driver, store.OperationQuery{ID: id})
}
