//go:build linux

package cli_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
)

// How many letters the questions are asked of. A deep run has all of them, and
// says how much processor time an answer may take. A quick one compares an answer
// with that of a store with a quarter of the letters: what is asked letter by letter
// costs four times as much, and what is bounded less than mostGrowth, however slow
// the machine is. An answer that costs less than 1/smallPart of reading all texts of
// the smaller store says nothing of growth.
const (
	millionLetters = 1_000_000
	manyLetters    = 40_000
	fewLetters     = manyLetters / 4
	mostAnswer     = 100 * time.Millisecond
	mostGrowth     = 3
	startOfProcess = 50 * time.Millisecond // what the clock of processes is uncertain by
	mostMemory     = 64 << 20              // of a process, most of it SQLite's cache of pages
	mostMore       = 20 << 20              // of a process that answers, more than with few letters
	smallPart      = 4
)

// rounds limits how often a question is asked. Where other tests keep the processors busy, the
// least cost takes many.
const rounds = 40

// TestShow4AMillionLetters asks everything that an operator can ask of a store
// with many letters: pages, groups, searches, counts. What an answer costs must not
// grow with the letters, neither in time nor in memory.
func TestShow4AMillionLetters(t *testing.T) {
	if testing.Short() {
		t.Skip("buries many letters")
	}
	letters, deep := manyLetters, proof.IsDeep()
	if deep {
		letters = millionLetters
	}
	few, many := newMountain(t, fewLetters), newMountain(t, letters)
	readAll := few.asking(few.page("", few.parse(`text:"was never said"`), ""))
	t.Logf("%-72s %10s %10s %10s %10s", "question", "cpu, few", "cpu, many", "p50", "p99")
	resting := resident()
	fewer := few.questions()
	for i, q := range many.questions() {
		j := trial{t: t, name: q.name, few: few.asking(fewer[i]), many: many.asking(q), readAll: readAll}
		if deep {
			j.most = mostAnswer
		}
		j.run()
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("this process: %d MiB resident at most before the questions, %d MiB after, heap from the system %d MiB", resting>>20,
		resident()>>20, mem.HeapSys>>20)
	many.right()
	for _, args := range [][]string{
		{"dlq", "list"}, {"dlq", "list", "--filter", "queue:queue-3 text:fallen"}, {"dlq", "show", "order-7"},
		{"dlq", "analyze"}, {"dlq", "analyze", "--filter", "text:refused"}, {"dlq", "stats"}, {"dlq", "stats", "--filter", "text:refused"},
		{"stats", "reasons"}, {"stats", "retries"}, {"queue", "list"},
	} {
		j := trial{t: t, name: "nixie " + strings.Join(args, " "), few: few.running(args), many: many.running(args), readAll: readAll}
		if deep {
			j.most = mostAnswer + startOfProcess
		}
		j.run()
		if more := many.light(args) - few.weight(args); more > mostMore {
			t.Errorf("%s has %d MiB more resident than with %d letters, want at most %d", j.name, more>>20, few.n, mostMore>>20)
		}
	}
	for _, args := range [][]string{{"dlq", "list", "--all", "--filter", "text:fallen"},
		{"dlq", "analyze", "--all", "--filter", "text:fallen"}} {
		many.light(args) // takes its time
	}
}

// trial compares what an answer costs of few letters and of many.
type trial struct {
	t         *testing.T
	name      string
	few, many func() time.Duration // one answer, in processor time
	readAll   func() time.Duration // what reading the texts of few costs
	most      time.Duration        // 0: mostGrowth times what it costs of few
}

// run asks the two stores alternately until the least costs fit, or often enough to know that they
// do not.
func (j *trial) run() {
	j.t.Helper()
	least, before, all := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	bound := j.most
	var took []time.Duration
	for i := range rounds {
		before = min(before, j.few())
		began := time.Now()
		least = min(least, j.many())
		took = append(took, time.Since(began))
		if j.most == 0 {
			bound = before * mostGrowth
			if least > bound {
				all = min(all, j.readAll())
				bound = max(bound, all/smallPart*mostGrowth)
			}
		}
		if i >= 2 && (j.most == 0 && least <= bound || least > time.Second) {
			break
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }
	j.t.Logf("%-72s %10s %10s %10s %10s", j.name, ms(before), ms(least), ms(took[len(took)/2]), ms(took[len(took)-1]))
	if least > bound {
		j.t.Errorf("%s takes %s of processor time, want at most %s", j.name, least, bound)
	}
}

// asking measures the cost of an answer in this process.
func (m *million) asking(q question) func() time.Duration {
	return func() time.Duration {
		began := cpuOf(syscall.RUSAGE_SELF)
		if err := q.ask(m.t.Context()); err != nil {
			m.t.Fatalf("%s: %v", q.name, err)
		}
		return cpuOf(syscall.RUSAGE_SELF) - began
	}
}

// running measures the cost of a nixie process.
func (m *million) running(args []string) func() time.Duration {
	return func() time.Duration {
		cmd := m.workspace.command("nixie", args...)
		if got := m.finish(cmd); got.code != 0 {
			m.t.Fatalf("nixie %q: exit %d\n%s", args, got.code, got.err)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}

// weight is the most memory that nixie has in use.
func (m *million) weight(args []string) int64 {
	m.t.Helper()
	got := m.finish(m.workspace.command("weighed", args...))
	lines := strings.Split(strings.TrimSpace(got.err), "\n")
	n, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if err != nil || got.code != 0 {
		m.t.Fatalf("nixie %q: exit %d, %v\n%s", args, got.code, err, got.err)
	}
	return n
}

// light is the most memory that nixie has in use, which has a bound.
func (m *million) light(args []string) int64 {
	m.t.Helper()
	used := m.weight(args)
	m.t.Logf("%-72s %d MiB resident at most", "nixie "+strings.Join(args, " "), used>>20)
	if used > mostMemory {
		m.t.Errorf("nixie %q has %d MiB resident, want at most %d", args, used>>20, mostMemory>>20)
	}
	return used
}

// right looks at some answers: a search that goes on from page to page finds all,
// and groups have all letters.
func (m *million) right() {
	m.t.Helper()
	found := 0
	for l, err := range m.office.AllLetters(m.t.Context(), m.parse(`text:"fallen BEHIND"`), false) {
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
	m.honest()
	for _, by := range []store.GroupBy{store.ByFingerprint, store.ByHour, store.ByAttempts} {
		groups, _, err := m.store.Count(m.t.Context(), nixie.Filter{},
			store.Counting{By: []store.GroupBy{by}, Scan: store.ScanRecent, Described: true})
		if err != nil {
			m.t.Fatal(err)
		}
		all := int64(0)
		for _, g := range groups[0] {
			all += g.Count
		}
		if all != int64(m.n) {
			m.t.Errorf("groups by %s have %d letters, want %d", by, all, m.n)
		}
	}
}

// honest compares counts of a text among the newest letters, and of all.
func (m *million) honest() {
	m.t.Helper()
	count := func(look store.Scan) (n int64, looked store.Coverage) {
		groups, looked, err := m.store.Count(m.t.Context(), m.parse("text:fallen"),
			store.Counting{By: []store.GroupBy{store.ByFingerprint}, Scan: look, Described: true})
		if err != nil {
			m.t.Fatal(err)
		}
		for _, g := range groups[0] {
			n += g.Count
		}
		return n, looked
	}
	if n, looked := count(store.ScanAll); n != 10 || !looked.All() {
		m.t.Errorf("of all letters %d have a text, want 10; it says that it looked at %+v", n, looked)
	}
	n, looked := count(store.ScanRecent)
	want := int64(0)
	for i := m.n - int(looked.Newest); i < m.n; i++ {
		if i%(m.n/10) == 7 {
			want++
		}
	}
	if n != want || looked.All() || looked.Of != int64(m.n) {
		m.t.Errorf("of the newest letters %d have a text, want %d; it says that it looked at %+v of %d", n, want, looked, m.n)
	}
	said := m.finish(m.workspace.command("nixie", "dlq", "analyze", "--filter",
		"text:fallen status:open,review,quarantined,redriving,discarded,resolved", "-o", "json"))
	if want := fmt.Sprintf("about the newest %d of %d letters that may match: --all looks at each\n", looked.Newest,
		m.n); said.err != want || !strings.Contains(said.out, `"looked_at": {`) {
		m.t.Errorf("nixie says %q and %.60q, want %q", said.err, said.out, want)
	}
	switch said := m.finish(m.workspace.command("nixie", "dlq", "list", "--filter", "text:\"was never said\"")); {
	case said.code == 0 && said.err == "no letters\n" && said.out == "": // it looked at all
	case said.code == 5 && strings.Contains(said.out, "looked at the newest ") &&
		strings.Contains(said.out, ", 0 match; there may be more: --cursor "):
	default:
		m.t.Errorf("nixie says %q and %q of a search that finds nothing, exit code %d", said.out, said.err, said.code)
	}
}

// cpuOf returns the processor time of this process, or of its children.
func cpuOf(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
