package river

import (
	"context"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertest"

	"github.com/nixie-go/nixie/bench/postgres/tasks"
)

func TestAWrongOrderDies(t *testing.T) {
	tx, err := pool(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // nothing is kept
	wrong := &shipper{ship: func(context.Context, int) error { return tasks.ErrWrong }}
	worker := rivertest.NewWorker(t, riverpgxv5.New(nil), &river.Config{}, wrong)
	got, err := worker.Work(t.Context(), t, tx, shipOrder{7}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.EventKind != river.EventKindJobCancelled || got.Job.Attempt != 1 {
		t.Errorf("%s after %d attempts", got.EventKind, got.Job.Attempt)
	}
}
