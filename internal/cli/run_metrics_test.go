//go:build linux

package cli_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// valued matches the series whose values do not depend on time.
var valued = regexp.MustCompile(`(?m)^nixie_\w+(_total|_count|_up)(\{[^}]*\})? .*$`)

// Show 1: the series of a run of 361 items of which 17 die. The reader of the summary waits, so the
// run does not end before the last scrape.
func TestShow1MetricsOfARun(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	var items strings.Builder
	for i := range 361 {
		fmt.Fprintf(&items, "%d\n", i+1)
	}
	d.write("items.txt", items.String())
	summary, stuck := fullPipe(t)
	cmd := d.command("nixie", "run", "items.txt", "--job", "orders", "--max-attempts", "1", "--metrics", "127.0.0.1:0", "--no-output",
		"-o", "json", "--", "sh", "-c", `[ $(($1 % 21)) != 0 ] || exit 65`, "sh", "{line}")
	cmd.Stdout = stuck
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stuck.Close() // the run has it
	lines := bufio.NewReader(errs)
	address, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	rest := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, lines)
		rest <- err
	}()
	url := strings.TrimSpace(strings.TrimPrefix(address, "metrics: "))
	const golden = "testdata/run_metrics.golden"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	update, got := flag.Lookup("update").Value.String() == "true", ""
	within(time.Minute, func() bool {
		answer, err := http.Get(url)
		if err != nil {
			return false
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		body, err := io.ReadAll(answer.Body)
		got = strings.Join(valued.FindAllString(string(body), -1), "\n") + "\n"
		if update {
			return err == nil && strings.Contains(got, `verb="bury"} 17`) && strings.Contains(got, `verb="complete"} 344`)
		}
		return got == string(want) // a scrape may come between two counters
	})
	if update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !update && got != string(want) {
		t.Errorf("the run has\n%s\nwant\n%s", got, want)
	}
	if _, err := io.Copy(io.Discard, summary); err != nil {
		t.Error(err)
	}
	if err := <-rest; err != nil {
		t.Error(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("exit %d", cmd.ProcessState.ExitCode())
	}
	if _, err := http.Get(url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the metrics answer after the run: %v", err)
	}
}

// fullPipe returns a pipe that takes nothing before it is read.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(ends[1], true); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := syscall.Write(ends[1], make([]byte, 4096)); err != nil {
			break
		}
	}
	if err := syscall.SetNonblock(ends[1], false); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(ends[0]), "summary"), os.NewFile(uintptr(ends[1]), "stuck")
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}
