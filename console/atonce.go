package console

import (
	"context"
	"fmt"
	"runtime/debug"
)

// maxAtOnce limits the questions of a page that the store answers at the same time: each takes a
// connection of a pool that others use, too, and the memory of a cache in SQLite.
const maxAtOnce = 2

// atOnce asks questions that do not depend on each other at the same time, and waits for all
// answers. It returns the error of the first question that has one. A panic becomes one of the
// caller: the server survives it there, and not on our goroutine.
func atOnce(ctx context.Context, questions ...func() error) error {
	asked := make([]*task, len(questions))
	free := make(chan struct{}, maxAtOnce)
	for i, ask := range questions {
		free <- struct{}{}
		asked[i] = begin(func() error {
			defer func() { <-free }()
			return metered(ctx, ask)
		})
	}
	for _, t := range asked {
		<-t.done
	}
	for _, t := range asked {
		if err := t.result(); err != nil {
			return err
		}
	}
	return nil
}

// task is done on a goroutine of its own, once for all who wait for it.
type task struct {
	done     chan struct{}
	err      error
	panicked string // what it panicked with, and the stack; "" is nothing
}

func begin(do func() error) *task {
	t := &task{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		defer func() {
			if cause := recover(); cause != nil {
				t.panicked = fmt.Sprintf("%v\n%s", cause, debug.Stack())
			}
		}()
		t.err = do()
	}()
	return t
}

// result returns the error of a task that is done. It panics if the task did.
func (t *task) result() error {
	if t.panicked != "" {
		panic(t.panicked)
	}
	return t.err
}

// within waits for a task, and returns its error. When ctx ends before the task, it returns nil:
// the task goes on.
func (t *task) within(ctx context.Context) error {
	select {
	case <-t.done:
		return t.result()
	case <-ctx.Done():
		return nil
	}
}
