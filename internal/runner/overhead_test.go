//go:build linux

package runner_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/command"
)

// partVariable makes this test binary the loop that runs are compared with, or a worker of its own.
const partVariable = "NIXIE_TEST_LOOP"

func TestMain(m *testing.M) {
	if command.GuardMain() {
		return
	}
	switch part := os.Getenv(partVariable); part {
	case "":
	case watchedPart:
		os.Exit(watched(os.Args[1], os.Args[2]))
	default:
		os.Exit(startMany(part, os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// startMany only starts true the given number of times, with the given parallelism. It throws the
// output away, or keeps the output of each as a job does.
func startMany(part, times, parallel string) int {
	path, err := exec.LookPath("true")
	n, nErr := strconv.Atoi(times)
	p, pErr := strconv.Atoi(parallel)
	if err != nil || nErr != nil || pErr != nil {
		return 2
	}
	start := discarded
	if part == "kept" {
		start = kept
	}
	var begun, failed atomic.Int64
	var all sync.WaitGroup
	for range p {
		all.Go(func() {
			for begun.Add(1) <= int64(n) {
				if start(path) != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(min(failed.Load(), 1))
}

func discarded(path string) error {
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Run()
}

func kept(path string) error {
	var out, errs bytes.Buffer
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("0001"), &out, &errs
	return cmd.Run()
}

// rival runs the same commands in one way.
type rival struct {
	name  string
	start func(b *testing.B, dir string, items, parallel int) *exec.Cmd
	walls []time.Duration
	cpus  []time.Duration
}

// rounds is the number of times that each rival runs, alternately, because machines are not quiet.
const rounds = 3

// The benchmark compares a job with only starting its processes, with the same parallelism:
//
//	go test -run '^$' -bench RunTrue -benchtime 20000x ./internal/runner
//
// Minimal is a loop that starts true in a group of its own and throws its output away. Kept does
// the same with input and both outputs in pipes, as a job does. Times are per item, medians of the
// rounds. Cpu is that of the parent and all its children.
func BenchmarkRunTrue(b *testing.B) {
	nixie := filepath.Join(b.TempDir(), "nixie")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", nixie,
		"../../cmd/nixie").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, parallel := range []int{2, 4} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			if b.N == 1 {
				return // only finds out whether it runs
			}
			rivals := []*rival{
				{name: "minimal", start: loop("minimal")},
				{name: "nixie", start: nixieRun(nixie)},
				{name: "kept", start: loop("kept")},
				{name: "xargs", start: xargs},
			}
			for range rounds {
				for _, r := range rivals {
					r.measure(b, parallel)
				}
			}
			report(b, rivals)
		})
	}
}

func (r *rival) measure(b *testing.B, parallel int) {
	b.Helper()
	dir := b.TempDir()
	var list strings.Builder
	for i := range b.N {
		fmt.Fprintf(&list, "%06d\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "items.txt"), []byte(list.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := r.start(b, dir, b.N, parallel)
	cmd.Dir = dir
	started := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v: %s", r.name, err, out)
	}
	r.walls = append(r.walls, time.Since(started))
	r.cpus = append(r.cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
}

func loop(part string) func(*testing.B, string, int, int) *exec.Cmd {
	return func(b *testing.B, _ string, items, parallel int) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), os.Args[0], strconv.Itoa(items), strconv.Itoa(parallel))
		cmd.Env = append(os.Environ(), partVariable+"="+part)
		return cmd
	}
}

func nixieRun(path string) func(*testing.B, string, int, int) *exec.Cmd {
	return func(b *testing.B, dir string, _, parallel int) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), path, "run", "items.txt", "-p", strconv.Itoa(parallel), "--", "true")
		cmd.Env = append(os.Environ(), "NIXIE_STORE=sqlite://"+filepath.Join(dir, "nixie.db"), "XDG_STATE_HOME="+dir)
		return cmd
	}
}

func xargs(b *testing.B, dir string, _, parallel int) *exec.Cmd {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	return exec.CommandContext(b.Context(), "xargs", "-a", filepath.Join(dir, "items.txt"), "-P", strconv.Itoa(parallel), "-n", "1", path)
}

func report(b *testing.B, rivals []*rival) {
	b.Helper()
	perItem := func(times []time.Duration) float64 {
		sorted := slices.Sorted(slices.Values(times))
		return float64(sorted[len(sorted)/2].Microseconds()) / float64(b.N)
	}
	b.ReportMetric(0, "ns/op") // of all together it says nothing
	wall, cpu := map[string]float64{}, map[string]float64{}
	for _, r := range rivals {
		wall[r.name], cpu[r.name] = perItem(r.walls), perItem(r.cpus)
		b.ReportMetric(wall[r.name], r.name+"-wall-µs")
		b.ReportMetric(cpu[r.name], r.name+"-cpu-µs")
	}
	for _, other := range []string{"minimal", "kept", "xargs"} {
		b.ReportMetric(wall["nixie"]/wall[other], "nixie/"+other+"-wall")
		b.ReportMetric(cpu["nixie"]/cpu[other], "nixie/"+other+"-cpu")
	}
}
