package ours

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// Again runs the messages that died once more, and returns how many.
func Again(ctx context.Context, st *postgres.Store) (int, error) {
	clerk, err := office.New(office.Config{Store: st, Actor: "ann"})
	if err != nil {
		return 0, err
	}
	filter := nixie.Filter{Types: []string{"ship-order"}}
	died := &office.OperationRequest{Event: store.OnRedrive, Filter: filter, Reason: "repaired", Force: true}
	operation, err := clerk.Begin(ctx, died)
	if err != nil {
		return 0, err
	}
	done, err := clerk.Run(ctx, operation.Operation, died)
	return int(done.Done()), err
}
