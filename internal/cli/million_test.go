//go:build linux

package cli_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/tier"
)

// How many letters the questions are asked of. A deep run has all of them, and
// says how much processor time an answer may take. A quick one compares an answer
// with that of a store with a quarter of the letters: what is asked letter by letter
// costs four times as much, and what is bounded less than mostGrowth, however slow
// the machine is.
const (
	millionLetters = 1_000_000
	manyLetters    = 20_000
	fewLetters     = manyLetters / 4
	mostAnswer     = 100 * time.Millisecond
	mostGrowth     = 3
	startOfProcess = 50 * time.Millisecond // what the clock of processes is uncertain by
	mostMemory     = 64 << 20              // of a process, most of it SQLite's cache of pages
	unmeasurable   = 10 * time.Millisecond // as little says nothing of growth
)

// rounds is how often a question is asked.
const rounds = 15

// TestShow4AMillionLetters asks everything that an operator can ask of a store
// with many letters: pages, groups, searches, counts. What an answer costs must not
// grow with the letters, neither in time nor in memory.
func TestShow4AMillionLetters(t *testing.T) {
	if testing.Short() {
		t.Skip("buries many letters")
	}
	var few, many *mountain
	if os.Getenv(tier.DeepVar) != "" {
		many = newMountain(t, millionLetters)
	} else {
		few, many = newMountain(t, fewLetters), newMountain(t, manyLetters)
	}
	t.Logf("%-72s %10s %10s %10s %10s", "question", "cpu, few", "cpu, many", "p50", "p99")
	resting := resident()
	var fewer []question
	if few != nil {
		fewer = few.questions()
	}
	for i, q := range many.questions() {
		j := trial{t: t, name: q.name, most: mostAnswer, grows: q.grows}
		if few != nil {
			j.few = few.asking(fewer[i])
		}
		j.many = many.asking(q)
		j.run()
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("this process: %d MiB resident at most before the questions, %d MiB after, heap from the system %d MiB", resting>>20, resident()>>20, mem.HeapSys>>20)
	many.right()
	for _, args := range [][]string{
		{"dlq", "list"}, {"dlq", "list", "--filter", "queue:queue-3 text:fallen"}, {"dlq", "show", "order-7"},
		{"dlq", "analyze"}, {"dlq", "stats"}, {"stats", "reasons"}, {"stats", "retries"}, {"queue", "list"},
	} {
		j := trial{t: t, name: "nixie " + strings.Join(args, " "), most: mostAnswer + startOfProcess}
		j.grows = len(args) > 2 && args[2] == "--filter" // it goes on until its page is full
		if few != nil {
			j.few = few.running(args)
		}
		j.many = many.running(args)
		j.run()
		used := many.weight(args)
		t.Logf("%-72s %d MiB resident at most", j.name, used>>20)
		if used > mostMemory {
			t.Errorf("%s has %d MiB resident, want at most %d", j.name, used>>20, mostMemory>>20)
		}
	}
}

// trial compares what an answer costs of few letters and of many.
type trial struct {
	t         *testing.T
	name      string
	few, many func() time.Duration // one answer, in processor time
	most      time.Duration        // without few
	grows     bool
}

// run asks in turns until the least of the costs fit, or often enough to know that
// they do not.
func (j *trial) run() {
	j.t.Helper()
	least, before := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	bound := j.most
	var took []time.Duration
	for i := range rounds {
		if j.few != nil {
			before = min(before, j.few())
			bound = max(before, unmeasurable) * mostGrowth
		}
		began := time.Now()
		least = min(least, j.many())
		took = append(took, time.Since(began))
		if i >= 2 && (j.few != nil && (j.grows || least <= bound) || least > time.Second) {
			break
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }
	fewer := ""
	if j.few != nil {
		fewer = ms(before)
	}
	note := ""
	if j.grows {
		note = "  may grow"
	}
	j.t.Logf("%-72s %10s %10s %10s %10s%s", j.name, fewer, ms(least), ms(took[len(took)/2]), ms(took[len(took)-1]), note)
	if least > bound && !j.grows {
		j.t.Errorf("%s takes %s of processor time, want at most %s", j.name, least, bound)
	}
}

// asking is what an answer costs this process.
func (m *mountain) asking(q question) func() time.Duration {
	return func() time.Duration {
		began := cpuOf(syscall.RUSAGE_SELF)
		if err := q.ask(m.t.Context()); err != nil {
			m.t.Fatalf("%s: %v", q.name, err)
		}
		return cpuOf(syscall.RUSAGE_SELF) - began
	}
}

// running is what it costs to run nixie as a person does.
func (m *mountain) running(args []string) func() time.Duration {
	return func() time.Duration {
		cmd := m.desk.command("nixie", args...)
		if got := m.finish(cmd); got.code != 0 {
			m.t.Fatalf("nixie %q: exit %d\n%s", args, got.code, got.err)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}

// weight is the most memory that nixie has in use.
func (m *mountain) weight(args []string) int64 {
	m.t.Helper()
	got := m.finish(m.desk.command("weighed", args...))
	lines := strings.Split(strings.TrimSpace(got.err), "\n")
	n, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if err != nil || got.code != 0 {
		m.t.Fatalf("nixie %q: exit %d, %v\n%s", args, got.code, err, got.err)
	}
	return n
}

// right looks at some answers: a search that goes on from page to page finds all,
// and groups have all letters.
func (m *mountain) right() {
	m.t.Helper()
	found := 0
	for l, err := range m.clerk.AllLetters(m.t.Context(), m.parse(`text:"fallen BEHIND"`), false) {
		if err != nil {
			m.t.Fatal(err)
		}
		if !strings.Contains(l.Message.LastFailure, "Fallen Behind") {
			m.t.Errorf("found %q", l.Message.LastFailure)
		}
		found++
	}
	if found != 10 {
		m.t.Errorf("a search finds %d letters, want 10", found)
	}
	for _, by := range []nixie.GroupBy{nixie.ByFingerprint, nixie.ByHour, nixie.ByAttempts} {
		groups, err := m.store.Groups(m.t.Context(), nixie.Filter{}, by)
		if err != nil {
			m.t.Fatal(err)
		}
		all := int64(0)
		for _, g := range groups {
			all += g.Count
		}
		if all != int64(m.n) {
			m.t.Errorf("groups by %s have %d letters, want %d", by, all, m.n)
		}
	}
}

// cpuOf is what this process, or its children, used of the processors.
func cpuOf(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
