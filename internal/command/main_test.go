//go:build linux

package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// actVariable makes this test binary act as another program in a test.
const actVariable = "COMMAND_TEST_ACT"

func TestMain(m *testing.M) {
	if GuardMain() {
		os.Exit(0)
	}
	if act := os.Getenv(actVariable); act != "" {
		os.Exit(play(act))
	}
	goleak.VerifyTestMain(m)
}

func play(act string) int {
	switch act {
	case "args": // prints its arguments, each ended by NUL
		for _, arg := range os.Args[1:] {
			fmt.Print(arg, "\x00")
		}
	case "runner":
		return playRunner(os.Getenv("COMMAND_TEST_DIR"), os.Getenv("COMMAND_TEST_SCRIPT"))
	case "parent": // of a command that may survive it
		_, err := Run(context.Background(), Spec{
			Args: []string{"sh", "-c", `echo > begun; read line < gate; echo > done`}, Env: os.Environ(),
			Survives: os.Getenv("COMMAND_TEST_SURVIVES") != "",
		})
		fmt.Println(err)
	case "stubborn": // ends on SIGKILL only
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		<-time.After(time.Hour) // a plain select is a deadlock to the runtime
	case "flood":
		flood(os.Getenv("COMMAND_TEST_FLOOD"))
	}
	return 0
}

// playRunner is a program that runs four commands under a guard until it is
// killed.
func playRunner(dir, script string) int {
	guard, err := StartGuard(dir, "runner")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := Run(context.Background(), Spec{
				Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "DIR=" + dir}, Guard: guard,
			})
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			fmt.Println(err)
		}
	}
	if err := guard.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func flood(size string) {
	var n int64
	if _, err := fmt.Sscan(size, &n); err != nil {
		panic(err)
	}
	end := make(chan error)
	for _, out := range []io.Writer{os.Stdout, os.Stderr} {
		go func() {
			block := []byte(strings.Repeat("0123456789abcde\n", 4096))
			for left := n; left > 0; left -= int64(len(block)) {
				if _, err := out.Write(block[:min(left, int64(len(block)))]); err != nil {
					end <- err
					return
				}
			}
			end <- nil
		}()
	}
	for range 2 {
		if err := <-end; err != nil {
			panic(err)
		}
	}
}

// self returns a spec that runs this binary as another program.
func self(act string, args ...string) Spec {
	return Spec{
		Path: "/proc/self/exe", Args: append([]string{"self"}, args...),
		Env: []string{actVariable + "=" + act, "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")},
	}
}

func shell(script string, args ...string) Spec {
	return Spec{Args: append([]string{"sh", "-c", script, "sh"}, args...), Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func mustRun(t testing.TB, spec Spec) Result {
	t.Helper()
	result, err := Run(t.Context(), spec)
	if err != nil {
		t.Fatalf("run %q: %v", spec.Args, err)
	}
	return result
}

// eventually polls a condition until it holds or a deadline passes.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	end := time.NewTimer(20 * time.Second)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("never: %s", what)
		}
	}
}
