package ours

import (
	"context"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/bench/postgres/tasks"
	"github.com/nixie-go/nixie/nixietest"
)

func TestAWrongOrderDies(t *testing.T) {
	wrong := handler(func(context.Context, int) error { return tasks.ErrWrong })
	got := nixietest.Run(t, wrong, nixietest.Message(t, shipOrder, 7))
	if got[0].State != nixie.Dead || got[0].Attempts != 1 {
		t.Errorf("%s after %d attempts", got[0].State, got[0].Attempts)
	}
}
