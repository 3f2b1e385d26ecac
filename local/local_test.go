package local_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/local"
	"github.com/nixie-go/nixie/store"
)

var count = nixie.NewType[int]("count")

// TestQueue works on what was enqueued here and before, and leaves a letter of what cannot succeed.
func TestQueue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "work.db")
	before, err := local.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = count.Enqueue(t.Context(), before, 1)
	_, elsewhere := count.Enqueue(t.Context(), before, 9, nixie.Queue("other"))
	if err := errors.Join(err, elsewhere, before.Close()); err != nil {
		t.Fatal(err)
	}
	sum := 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	queue, err := local.Open(file, count.Handle(func(_ context.Context, job *nixie.Job[int]) error {
		if job.Body < 0 {
			return nixie.Permanent(errors.New("below zero"))
		}
		if sum += job.Body; sum == 6 {
			stop()
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = queue.Close() }()
	if err := errors.Join(enqueue(ctx, queue, 2, -1), queue.Drain(ctx)); err != nil || sum != 3 {
		t.Errorf("sum %d, %v", sum, err)
	}
	if err := errors.Join(enqueue(ctx, queue, 3), queue.Run(ctx)); err != nil || sum != 6 {
		t.Errorf("sum %d, %v", sum, err)
	}
	letters, _, err := queue.Store.Letters(t.Context(), nixie.Filter{}, store.Page{})
	if err != nil || len(letters) != 1 || letters[0].Message.Queue != local.DefaultQueue {
		t.Errorf("%d letters, %v", len(letters), err)
	}
}

func enqueue(ctx context.Context, queue *local.Queue, numbers ...int) error {
	var errs []error
	for _, n := range numbers {
		_, err := count.Enqueue(ctx, queue, n)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "work.db")
	if _, err := local.Open(file, count.Handle(nil), count.Handle(nil)); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("two routes of one type: %v", err)
	}
	if _, err := local.Open(t.TempDir(), count.Handle(nil)); err == nil {
		t.Error("a folder is opened")
	}
	if _, err := local.Open(file, count.Handle(nil, nixie.Backoff("often"))); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("a backoff that is none: %v", err)
	}
}
