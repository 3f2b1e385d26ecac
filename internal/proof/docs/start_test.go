package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// The limits of processor time, start included, for the best of many starts: others on the same
// machine add to one. A machine that is slow as a whole adds to all, so NIXIE_PROOF=long asks for
// them, and each run prints them.
const (
	helpTime, listTime = 10 * time.Millisecond, 20 * time.Millisecond
	starts             = 40
)

// ownInit bounds the bytes that our own packages allocate before main, and does not depend on the
// machine. A compiled pattern has about ten thousand.
const ownInit = 40_000

// TestStart measures what each start of nixie costs.
func TestStart(t *testing.T) {
	nixie, folder := filepath.Join(build(t), "nixie"), t.TempDir()
	run := func(env string, args ...string) (*exec.Cmd, string) {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), nixie, args...)
		cmd.Env, cmd.Dir, cmd.Stderr = append(os.Environ(), "NIXIE_STORE=sqlite://nixie.db", env), folder, &stderr
		_ = cmd.Run() // a job with dead items has an exit code of its own
		return cmd, stderr.String()
	}
	if err := os.WriteFile(filepath.Join(folder, "items.txt"), []byte(strings.Repeat("item\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	run("", "run", "items.txt", "--max-attempts", "1", "--", "false")
	for _, c := range []struct {
		args []string
		most time.Duration
	}{{[]string{"--help"}, helpTime}, {[]string{"dlq", "list"}, listTime}} {
		best := time.Hour
		for range starts {
			cmd, stderr := run("", c.args...)
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Fatalf("nixie %v ends with %d: %s", c.args, code, stderr)
			}
			best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
		t.Logf("nixie %s: %s of processor time", strings.Join(c.args, " "), best)
		if proof.Current() >= proof.Long && best > c.most {
			t.Errorf("nixie %s took %s of processor time at least, want at most %s", strings.Join(c.args, " "), best, c.most)
		}
	}
	_, trace := run("GODEBUG=inittrace=1", "--help")
	if n := initialised(trace); n == 0 || n > ownInit {
		t.Errorf("our packages allocate %d bytes before main, want at most %d:\n%s", n, ownInit, trace)
	}
}

// initialised adds up what our packages allocate before main, as the runtime reports it:
//
//	init github.com/nixie-go/nixie/policy @6.3 ms, 0.038 ms clock, 2568 bytes, 32 allocs
func initialised(trace string) (sum int) {
	for line := range strings.Lines(trace) {
		if !strings.HasPrefix(line, "init github.com/nixie-go/nixie") {
			continue
		}
		words := strings.Fields(line)
		n, _ := strconv.Atoi(words[max(0, len(words)-4)])
		sum += n
	}
	return sum
}
