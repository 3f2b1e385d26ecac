//go:build linux

package cli_test

import (
	"context"
	"fmt"
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
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// How many letters the questions are asked of, and how much processor time an
// answer may take. A deep run has them all. A quick one has a fiftieth and the same
// bound: what an answer costs by the kinds and hours there are is the same in both.
const (
	millionLetters = 1_000_000
	quickLetters   = millionLetters / 50
	mostAnswer     = 100 * time.Millisecond
	mostCommand    = 3 * mostAnswer // with the start of the process, which is slow under the race detector
)

const causes = 200

// mountain is a store with many letters of causes groups, over 30 days.
type mountain struct {
	*desk
	n     int
	began time.Time // of the 30 days
	now   time.Time
	store *sqlite.Store
	clerk *office.Office
}

// kind is what the letters of a group share: they come from one place in the code
// of one queue's handler.
func (m *mountain) kind(g int) nixie.Letter {
	reasons, classes := nixie.Reasons(), nixie.Classes()
	return nixie.Letter{
		Message: nixie.Message{Queue: fmt.Sprint("queue-", g%5), Type: fmt.Sprint("type-", g%7)},
		Cause:   nixie.Causes()[g%3], Class: classes[g%len(classes)], Reason: reasons[g%len(reasons)],
		Signature:   fmt.Sprintf("store.(*client).Call%d: dial tcp <ip>: order <n> of customer <id> was refused by node <n>", g),
		Fingerprint: fmt.Sprintf("v1:%016x", g*2654435761),
		Redrivable:  g%3 != 0, NeedsReview: g%10 == 0, Rule: "default",
	}
}

// letter is the i-th to die. A few causes make most of the letters.
func (m *mountain) letter(i int) nixie.Letter {
	g := i % causes * (i % 7) / 7
	l := m.kind(g)
	at := m.began.Add(time.Duration(i) * (30 * 24 * time.Hour / time.Duration(m.n)))
	l.DiedAt, l.LastFailedAt, l.FirstFailedAt = at, at, at.Add(-time.Duration(i%600)*time.Second)
	l.Message.Body, l.Message.Key = []byte(fmt.Sprintf(`{"order":%d}`, i)), fmt.Sprint("order-", i)
	l.Message.Attempts, l.Message.Deliveries = 1+g%5, 1+g%5+i%2
	if g%5 == 1 {
		l.Message.Stream = fmt.Sprint("customer-", i%997)
	}
	l.Status = nixie.StatusOpen
	switch {
	case g%10 == 0:
		l.Status = nixie.StatusReview
	case i%50 == 0:
		l.Status = nixie.StatusQuarantined
	}
	text := fmt.Sprintf("store.(*client).Call%d: dial tcp 10.%d.%d.7:5432: order %d of customer %x was refused by node %d after 3 tries: connection reset by peer (request %08x-%04x)", g, i%250, i%31, i, i*7919, i%97, i*40503, i%65536)
	if i%(m.n/10) == 7 {
		text += "; the replica had Fallen Behind"
	}
	l.History = []nixie.Failure{{Generation: 1, Attempt: 1, StartedAt: l.FirstFailedAt, FailedAt: at, Class: l.Class, Reason: l.Reason, Type: "*net.OpError", Text: text, Worker: "host:1"}}
	return l
}

func newMountain(t *testing.T, n int) *mountain {
	t.Helper()
	now := time.Now().UTC().Round(0)
	m := &mountain{desk: newDesk(t), n: n, began: now.Add(-30 * 24 * time.Hour), now: now}
	var err error
	m.store, err = sqlite.Open(m.path("nixie.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.store.Close() })
	if m.clerk, err = office.New(office.Config{Store: m.store, Actor: "tester", Clock: time.Now}); err != nil {
		t.Fatal(err)
	}
	m.fill()
	return m
}

// fill buries the letters by the thousand, and settles some of them.
func (m *mountain) fill() {
	const step = 1000
	began := cpuOf(syscall.RUSAGE_SELF)
	for lo := 0; lo < m.n; lo += step {
		letters := make([]nixie.Letter, 0, step)
		for i := lo; i < min(lo+step, m.n); i++ {
			letters = append(letters, m.letter(i))
		}
		receipts, errs := m.store.Bury(m.t.Context(), letters, "tester", "")
		var moves []store.Resolution
		for i, err := range errs {
			if err != nil {
				m.t.Fatal(err)
			}
			switch i % 20 {
			case 3, 9, 13:
				moves = append(moves, store.Resolution{Letter: receipts[i].ID, Event: nixie.OnDiscard, Actor: "tester", Reason: "old"})
			case 17:
				moves = append(moves, store.Resolution{Letter: receipts[i].ID, Event: nixie.OnRedrive, Actor: "tester", Force: true})
			}
		}
		for _, err := range m.store.Resolve(m.t.Context(), moves) {
			if err != nil {
				m.t.Fatal(err)
			}
		}
	}
	took := cpuOf(syscall.RUSAGE_SELF) - began
	m.t.Logf("%d letters buried and a fifth of them moved on: %.1f s of processor time, %.0f µs each", m.n, took.Seconds(), took.Seconds()*1e6/float64(m.n))
}

// question is something that an operator asks.
type question struct {
	name string
	ask  func(context.Context) error
}

// TestShow4AMillionLetters asks everything that an operator can ask of a store
// with many letters: pages, groups, searches, counts. What an answer costs must not
// grow with the letters, neither in time nor in memory.
func TestShow4AMillionLetters(t *testing.T) {
	if testing.Short() {
		t.Skip("buries many letters")
	}
	n := quickLetters
	if os.Getenv(tier.DeepVar) != "" {
		n = millionLetters
	}
	m := newMountain(t, n)
	t.Logf("%-60s %10s %10s %10s", "question", "cpu least", "p50", "p99")
	resting := resident(t, "self")
	for _, q := range slices.Concat(m.pages(), m.searches(), m.groups(), m.numbers()) {
		least := m.measure(q, rounds)
		if least > mostAnswer {
			t.Errorf("%s takes %s of processor time at %d letters, want at most %s", q.name, least, n, mostAnswer)
		}
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("this process: %d MiB resident before the questions, %d MiB at most, heap from the system %d MiB", resting>>20, resident(t, "self")>>20, mem.HeapSys>>20)
	m.right()
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"dlq", "list"}, {"dlq", "list", "--filter", "queue:queue-3 text:fallen"}, {"dlq", "show", "order-7"},
		{"dlq", "analyze"}, {"dlq", "stats"}, {"stats", "reasons"}, {"stats", "retries"}, {"queue", "list"},
	} {
		m.command(args, n)
	}
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

// rounds is how often a question is asked.
const rounds = 15

// measure asks a question again and again and returns the least processor time of an answer.
func (m *mountain) measure(q question, rounds int) time.Duration {
	m.t.Helper()
	var took, busy []time.Duration
	for i := range rounds {
		began, cpu := time.Now(), cpuOf(syscall.RUSAGE_SELF)
		if err := q.ask(m.t.Context()); err != nil {
			m.t.Fatalf("%s: %v", q.name, err)
		}
		took, busy = append(took, time.Since(began)), append(busy, cpuOf(syscall.RUSAGE_SELF)-cpu)
		if i == 2 && slices.Min(took) > time.Second {
			break
		}
	}
	m.report(q.name, took, slices.Min(busy))
	return slices.Min(busy)
}

func (m *mountain) report(name string, took []time.Duration, cpu time.Duration) {
	slices.Sort(took)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1e3) }
	m.t.Logf("%-60s %10s %10s %10s", name, ms(cpu), ms(took[len(took)/2]), ms(took[len(took)-1]))
}

// command runs nixie as a person does.
func (m *mountain) command(args []string, n int) {
	m.t.Helper()
	var took, busy []time.Duration
	most := int64(0)
	for range 5 {
		cmd := m.desk.command("nixie", args...)
		began := time.Now()
		if got := m.finish(cmd); got.code != 0 {
			m.t.Fatalf("nixie %q: exit %d\n%s", args, got.code, got.err)
		}
		took = append(took, time.Since(began))
		busy = append(busy, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			most = max(most, used.Maxrss)
		}
	}
	name := fmt.Sprintf("nixie %s (%d MiB)", strings.Join(args, " "), most>>10)
	m.report(name, took, slices.Min(busy))
	if least := slices.Min(busy); least > mostCommand {
		m.t.Errorf("nixie %q takes %s of processor time at %d letters, want at most %s", args, least, n, mostCommand)
	}
}

// filters are the choices that pages and groups are asked with, in the language
// of people.
func (m *mountain) filters() []string {
	day := func(d int) string { return m.began.AddDate(0, 0, d).Format(time.DateOnly) }
	one := m.kind(7)
	return []string{
		"", "status:open,review,quarantined,redriving", "queue:queue-3", "queue:none", "reason:timeout", "reason:" + string(one.Reason), "type:type-6", "status:quarantined", "status:resolved", "class:permanent", "cause:poison",
		"fingerprint:" + one.Fingerprint, "signature:Call7:", "signature:refused", "redrivable:no", "needs_review:yes",
		"died:" + day(12), "died:<" + day(2), "died:>=" + day(3) + " died:<" + day(28), "age:<1h",
		"queue:queue-3 reason:" + string(m.kind(13).Reason) + " status:open", "queue:queue-2 type:type-0 status:open,review died:<" + day(3), "status:discarded queue:queue-4 died:" + day(20),
	}
}

// narrow are choices that counters know nothing of.
func (m *mountain) narrow() []string {
	day := func(d int) string { return m.began.AddDate(0, 0, d).Format(time.DateOnly) }
	return []string{
		"stream:customer-100", "stream:nobody", "key:order-" + strconv.Itoa(m.n/2), "key:nothing",
		"first_failed:" + day(12), "first_failed:<" + day(0), "last_failed:" + day(12), "last_failed:>" + day(40),
		"text:refused", "text:\"FALLEN behind\"", "text:\"was never said\"", "text:\"order " + strconv.Itoa(m.n/3) + " of\"", "queue:queue-3 text:\"fallen behind\"", "text:zq",
		"attempts:3", "attempts:>9", "deliveries:>5", "redrives:>0", "redrives:>3", "crashes:>0",
	}
}

func (m *mountain) parse(text string) nixie.Filter {
	m.t.Helper()
	f, err := nixie.ParseFilter(text, time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

// page is a question for the page after some others.
func (m *mountain) page(name string, f nixie.Filter, cursor string) question {
	return question{name, func(ctx context.Context) error {
		_, _, err := m.store.Letters(ctx, f, store.Page{Cursor: cursor})
		return err
	}}
}

func (m *mountain) pages() (list []question) {
	for _, text := range m.filters() {
		list = append(list, m.page("page "+text, m.parse(text), ""))
	}
	f := office.Unresolved(nixie.Filter{})
	for _, at := range []int{m.n / 2, m.n - 60} {
		list = append(list, m.page(fmt.Sprintf("page after %d", at), nixie.Filter{}, m.cursor(at)), m.page(fmt.Sprintf("page after %d, unresolved", at), f, m.cursor(at)))
	}
	return list
}

// cursor is that of the page after so many letters.
func (m *mountain) cursor(after int) string {
	m.t.Helper()
	f := nixie.Filter{Died: nixie.Times{Before: m.letter(m.n - after).DiedAt}}
	_, cursor, err := m.store.Letters(m.t.Context(), f, store.Page{Limit: 1})
	if err != nil {
		m.t.Fatal(err)
	}
	return cursor
}

func (m *mountain) searches() (list []question) {
	for _, text := range m.narrow() {
		list = append(list, m.page("page "+text, m.parse(text), ""))
	}
	return append(list,
		question{"letter by key", func(ctx context.Context) error {
			_, err := m.clerk.Letter(ctx, fmt.Sprint("order-", m.n/3))
			return err
		}},
		question{"a whole page with bodies", func(ctx context.Context) error {
			_, _, err := m.store.Letters(ctx, nixie.Filter{}, store.Page{Whole: true})
			return err
		}})
}

func (m *mountain) groups() (list []question) {
	ask := func(text string, by nixie.GroupBy) {
		f := m.parse(text)
		list = append(list, question{fmt.Sprintf("groups by %s %s", by, text), func(ctx context.Context) error {
			_, err := m.store.Groups(ctx, f, by)
			return err
		}})
	}
	for _, by := range []nixie.GroupBy{
		nixie.ByFingerprint, nixie.ByReason, nixie.ByClass, nixie.ByType, nixie.ByQueue, nixie.ByStatus, nixie.ByHour, nixie.ByRedrivable, nixie.ByAttempts, nixie.ByReview,
	} {
		ask("", by)
	}
	for _, text := range m.filters()[1:] {
		ask(text, nixie.ByFingerprint)
		ask(text, nixie.ByHour)
	}
	for _, text := range []string{"stream:customer-100", "key:order-100", "text:\"fallen behind\""} {
		ask(text, nixie.ByFingerprint)
	}
	return list
}

func (m *mountain) numbers() []question {
	return []question{
		{"queues", func(ctx context.Context) error { _, err := m.store.Queues(ctx); return err }},
		{"office: stats", func(ctx context.Context) error { _, err := m.clerk.Stats(ctx, nixie.Filter{}); return err }},
		{"office: stats of a queue", func(ctx context.Context) error { _, err := m.clerk.Stats(ctx, m.parse("queue:queue-3")); return err }},
		{"office: analyze", func(ctx context.Context) error {
			_, err := m.clerk.Analyze(ctx, office.Unresolved(nixie.Filter{}))
			return err
		}},
		{"office: analyze the last day", func(ctx context.Context) error {
			_, err := m.clerk.Analyze(ctx, office.Unresolved(m.parse("age:<1d")))
			return err
		}},
		{"office: reasons", func(ctx context.Context) error { _, err := m.clerk.Reasons(ctx, nil); return err }},
		{"office: retries", func(ctx context.Context) error { _, err := m.clerk.Retries(ctx, nil); return err }},
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

// resident is the most memory that a process has had in use.
func resident(t *testing.T, process string) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if kb, is := strings.CutPrefix(line, "VmHWM:"); is {
			n, err := strconv.ParseInt(strings.Fields(kb)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
