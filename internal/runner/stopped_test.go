package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/store/memory"
)

// Work that is told to stop while it looks at its queues ends as work that is told later: with no
// error.
func TestStoppedBeforeItWorks(t *testing.T) {
	t.Parallel()
	step, err := command.Exec([]string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r, err := runner.New(runner.Config{
		Queues: []string{"q"}, Steps: []command.Step{step}, Parallel: 1, StateFolder: t.TempDir(), Owner: "stopped", Clock: time.Now,
		Warn: func(string, ...any) { stop() }, // of a queue that does not exist yet
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Use(memory.New(memory.Options{}))
	if _, err := r.Work(ctx); err != nil {
		t.Error(err)
	}
}
