package testservers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// keeper holds the shell of a server of tests. The shell starts the server, and ends it when its
// own standard input ends: however the tests end, nothing stays behind.
type keeper struct {
	Reason string // why there is none; empty: there is one

	folder string    // what the server writes; it goes with it
	server *exec.Cmd // the shell; nil where the server is given
	leash  io.Closer // while it is open the server runs
	port   string    // host and port that are free again when the server is gone, if that is waited for
	asked  bool
}

// goodbyePatience bounds the wait for a port that a server had.
const goodbyePatience = 30 * time.Second

// kept is a server with a keeper.
type kept interface {
	start(ctx context.Context, m Machine) error
	Stop() error
	its() *keeper
}

func (k *keeper) its() *keeper { return k }

// with runs the tests of a package with a server, and returns their exit code. Without one the
// tests say so and are skipped.
func with(run func() int, name string, patience time.Duration, s kept) int {
	k := s.its()
	if k.Reason = needless(); k.Reason != "" {
		return run()
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := s.start(ctx, This()); err != nil {
		k.Reason = err.Error()
	}
	code := run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return cmp.Or(code, 1)
	}
	return code
}

// own starts a server for one test, which is rough with it, and ends it with the test. The test is
// skipped, or fails, where there is none.
func own(t testing.TB, patience time.Duration, s kept, start func(context.Context, Machine) error) {
	t.Helper()
	if testing.Short() {
		t.Skip(short)
	}
	k := s.its()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := start(ctx, This()); err != nil {
		k.Reason = err.Error()
	} else if k.server == nil {
		k.Reason = "the server is given, and a test that is rough with it needs one of its own"
	}
	k.Need(t)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Need skips the test where there is no server; with NIXIE_TEST_REQUIRE set it fails.
func (k *keeper) Need(t testing.TB) { need(t, k.Reason) }

// run starts the shell of a server.
func (k *keeper) run(shell *exec.Cmd) (err error) {
	k.server = shell
	if k.leash, err = shell.StdinPipe(); err != nil {
		return err
	}
	return shell.Start()
}

// until waits until a server answers.
func (k *keeper) until(ctx context.Context, name string, answers func(context.Context) bool) error {
	try := time.NewTicker(20 * time.Millisecond)
	defer try.Stop()
	for !answers(ctx) {
		select {
		case <-try.C:
		case <-ctx.Done():
			said, _ := os.ReadFile(filepath.Join(k.folder, "server.log")) // the error before counts
			return fmt.Errorf("%s did not start in time: %w: %s", name, ctx.Err(), said)
		}
	}
	return nil
}

// Stop ends the server and removes what it wrote.
func (k *keeper) Stop() error {
	if k.server == nil || k.asked {
		return nil
	}
	k.asked = true
	err := k.leash.Close()
	_ = k.server.Wait() // what it says does not matter any more
	if k.port != "" {
		ctx, stop := context.WithTimeout(context.Background(), goodbyePatience)
		defer stop()
		_ = leaves(ctx, k.port) // another program may have the port by now
	}
	return errors.Join(err, os.RemoveAll(k.folder))
}
