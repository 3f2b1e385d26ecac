package app

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// Overview reads the numbers of a store, for callers that have no office over it.
func Overview(ctx context.Context, st store.Store) (nixie.Overview, error) {
	o, err := office.New(office.Config{Store: st, Actor: "overview"}) // it only looks
	if err != nil {
		return nixie.Overview{}, err
	}
	return o.Overview(ctx)
}
