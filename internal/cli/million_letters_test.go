//go:build linux

package cli_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

const causes = 200

// million is a store with many letters of causes groups, from 30 days.
type million struct {
	*workspace
	n      int
	began  time.Time // of the 30 days
	now    time.Time
	store  *sqlite.Store
	office *office.Office
}

// kind returns the fields that all letters of a group share: one line in the handler of one queue
// made them.
func (m *million) kind(g int) nixie.Letter {
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
func (m *million) letter(i int) nixie.Letter {
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
	text := fmt.Sprintf("store.(*client).Call%d: dial tcp 10.%d.%d.7:5432: order %d of customer %x was refused by node %d after 3 "+
		"tries: connection reset by peer (request %08x-%04x)", g, i%250, i%31, i, i*7919, i%97, i*40503, i%65536)
	if i%(m.n/10) == 7 {
		text += "; the replica had Fallen Behind"
	}
	l.History = []nixie.Failure{{Generation: 1, Attempt: 1, StartedAt: l.FirstFailedAt, FailedAt: at, Class: l.Class, Reason: l.Reason,
		Type: "*net.OpError", Text: text, Worker: "host:1"}}
	return l
}

func newMountain(t *testing.T, n int) *million {
	t.Helper()
	now := time.Now().UTC().Round(0)
	m := &million{workspace: newWorkspace(t), n: n, began: now.Add(-30 * 24 * time.Hour), now: now}
	var err error
	m.store, err = sqlite.Open(m.path("nixie.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.store.Close() })
	if m.office, err = office.New(office.Config{Store: m.store, Actor: "tester", Clock: time.Now}); err != nil {
		t.Fatal(err)
	}
	m.fill()
	return m
}

// fill buries the letters by the thousand, and settles some of them.
func (m *million) fill() {
	const step = 1000
	began := cpuOf(syscall.RUSAGE_SELF)
	for lo := 0; lo < m.n; lo += step {
		letters := make([]nixie.Letter, 0, step)
		for i := lo; i < min(lo+step, m.n); i++ {
			letters = append(letters, m.letter(i))
		}
		receipts, errs := m.store.Adopt(m.t.Context(), letters, "tester", "")
		var moves []store.Resolution
		for i, err := range errs {
			if err != nil {
				m.t.Fatal(err)
			}
			switch i % 20 {
			case 3, 9, 13:
				moves = append(moves, store.Resolution{Letter: receipts[i].ID, Event: store.OnDiscard, Actor: "tester", Reason: "old"})
			case 17:
				moves = append(moves, store.Resolution{Letter: receipts[i].ID, Event: store.OnRedrive, Actor: "tester", Force: true})
			}
		}
		for _, err := range m.store.Resolve(m.t.Context(), moves) {
			if err != nil {
				m.t.Fatal(err)
			}
		}
	}
	took := cpuOf(syscall.RUSAGE_SELF) - began
	m.t.Logf("%d letters buried and a fifth of them moved on: %.1f s of processor time, %.0f µs each", m.n, took.Seconds(),
		took.Seconds()*1e6/float64(m.n))
}
