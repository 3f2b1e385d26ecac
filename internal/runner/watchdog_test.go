//go:build linux

package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// A worker that is stuck in its store ends its process, and says where it was. One whose command
// takes longer than the watchdog allows silence does not.
func TestWatchdogEndsAStuckWorker(t *testing.T) {
	for _, c := range []struct{ how, ends, says string }{
		{how: "claims", ends: "signal: killed", says: "stuckStore.Claim("},
		{how: "settles", ends: "signal: killed", says: "stuckStore.Settle("},
		{how: "works", ends: "exit status 0", says: "1 succeeded"},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self, c.how, t.TempDir())
			cmd.Env = append(os.Environ(), partVariable+"="+watchedPart)
			var said bytes.Buffer
			cmd.Stderr = &said
			_ = cmd.Run() // its state says how it ended
			if got := cmd.ProcessState.String(); got != c.ends || !strings.Contains(said.String(), c.says) {
				t.Errorf("it ended with %s, want %s, and said:\n%s", got, c.ends, said.String())
			}
			killed := strings.Contains(said.String(), "watchdog ends the process: [the worker has not gone on for")
			if killed != (c.how != "works") {
				t.Errorf("it said of its watchdog:\n%s", said.String())
			}
		})
	}
}

// watchedPart makes this test binary a worker with a watchdog.
const watchedPart = "watched"

// watched works on a queue with one message until it is drained, unless its store gets stuck.
func watched(how, folder string) int {
	err := func() error {
		st := memory.New(memory.Options{})
		if _, err := st.Enqueue(context.Background(), nixie.Message{Queue: "q"}); err != nil {
			return err
		}
		step, err := command.Exec([]string{"sleep", "5"})
		if how != "works" {
			step, err = command.Exec([]string{"true"})
		}
		if err != nil {
			return err
		}
		r, err := runner.New(runner.Config{
			Queues: []string{"q"}, Until: runner.Drained, Steps: []command.Step{step}, Parallel: 1, Lease: time.Second,
			Watchdog: 2 * time.Second, Environ: os.Environ(), StateFolder: folder, Owner: "watched", Clock: time.Now,
			Warn: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
		})
		if err != nil {
			return err
		}
		r.Use(stuckStore{st, how})
		done, err := r.Work(context.Background())
		fmt.Fprintln(os.Stderr, done.Succeeded, "succeeded")
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// stuckStore has a call that does not return, and does not listen to its context.
type stuckStore struct {
	store.Store
	in string
}

func (s stuckStore) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	if s.in == "claims" {
		select {}
	}
	return s.Store.Claim(ctx, queue, want)
}

func (s stuckStore) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	if s.in == "settles" {
		select {}
	}
	return s.Store.Settle(ctx, sts)
}
