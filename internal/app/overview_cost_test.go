//go:build linux

package app_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
)

// Bounds of TestOverviewCost. A quick run has fewer letters and a wider bound: a loaded machine
// measures badly.
const (
	costQueues  = 1000
	deepLetters = 1_000_000
	fewLetters  = 20_000
	deepCost    = 20 * time.Millisecond
	quickCost   = 80 * time.Millisecond
)

// An overview of 1,000 queues costs little, however many letters there are.
func TestOverviewCost(t *testing.T) {
	if testing.Short() {
		t.Skip("buries many letters")
	}
	letters, bound := fewLetters, quickCost
	if proof.IsDeep() {
		letters, bound = deepLetters, deepCost
	}
	st, err := app.OpenStore("sqlite://"+filepath.Join(t.TempDir(), "s.db"), app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // the test is over
	fill(t, st, letters)
	least := time.Hour
	for range 10 {
		began := processorTime()
		o, err := app.Overview(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, processorTime()-began)
		n := o.Queues[7]
		if len(o.Queues) != costQueues || n.Ready != 1 || n.Scheduled != 1 || n.Letters[nixie.StatusOpen] != int64(letters/costQueues) ||
			n.OldestLetter.IsZero() || n.OldestReady.IsZero() || o.At.IsZero() {
			t.Fatalf("%d queues, %+v", len(o.Queues), n)
		}
	}
	t.Logf("an overview of %d queues with %d letters takes %s of processor time", costQueues, letters, least)
	if least > bound {
		t.Errorf("it takes %s, want at most %s", least, bound)
	}
}

func fill(t *testing.T, st store.Store, letters int) {
	t.Helper()
	var waiting []nixie.Message
	for i := range costQueues {
		q := fmt.Sprintf("queue-%03d", i)
		waiting = append(waiting, nixie.Message{Queue: q}, nixie.Message{Queue: q, NotBefore: time.Now().Add(time.Hour)})
	}
	if _, err := st.Enqueue(t.Context(), waiting...); err != nil {
		t.Fatal(err)
	}
	died := time.Now().Add(-time.Hour)
	for lo := 0; lo < letters; lo += costQueues {
		list := make([]nixie.Letter, costQueues)
		for i := range list {
			list[i] = nixie.Letter{
				Message: nixie.Message{Queue: fmt.Sprintf("queue-%03d", i), Attempts: 1, Deliveries: 1},
				Cause:   nixie.CauseExhausted, Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Status: nixie.StatusOpen,
				Signature: "s", Fingerprint: "v1-1", DiedAt: died, FirstFailedAt: died, LastFailedAt: died, Rule: "default",
				History: []nixie.Failure{{Generation: 1, Attempt: 1, StartedAt: died, FailedAt: died, Class: nixie.ClassUnknown,
					Reason: nixie.ReasonHandler, Text: "no"}},
			}
		}
		_, errs := st.Adopt(t.Context(), list, "tester", "")
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
