//go:build unix

package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// One record of a thousand kills its consumer. It alone becomes a letter, and all others succeed.
func TestR13_Innocents(t *testing.T) {
	t.Parallel()
	const records, killer, parallel, most = 1000, 300, 8, 8
	f := actual(t)
	f.produce(t, records, func(i int) string {
		if i == killer {
			return poison
		}
		return fine
	})
	l := newLedger()
	var table strings.Builder
	fmt.Fprintln(&table, "kill  handled before  in hand")
	for kills := 1; ; kills++ {
		c := f.consume(t, l, parallel)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for len(f.Records(t, f.letters())) == 0 && t.Context().Err() == nil {
				sleep(t.Context(), 5*time.Millisecond)
			}
		}()
		select {
		case <-c.gone: // it died of the record
			fmt.Fprintf(&table, "%4d  %14d  %7d\n", kills, l.handled(), f.kill(t, c))
			if kills > most {
				t.Fatalf("%d kills\n%s", kills, table.String())
			}
			continue
		case <-over:
		case <-time.After(testTimeout):
			t.Fatalf("no letter after %d kills\n%s", kills-1, table.String())
		}
		l.until(t, records-1)
		f.allDone(t)
		c.Kill()
		break
	}
	t.Logf("\n%s", table.String())
	letters := f.distinct(t)
	if len(letters) != 1 || string(letters[0].Value) != fmt.Sprint(poison, " ", killer) ||
		header(&letters[0], broker.HeaderReason) != "poison" {
		t.Errorf("%d letters: %+v", len(letters), letters)
	}
	if l.handled() != records-1 {
		t.Errorf("%d of %d others were handled", l.handled(), records-1)
	}
}

// The letter of a message that failed four times has four failures, and its steps, though the
// record that waited was a new one each time.
func TestHistory(t *testing.T) {
	t.Parallel()
	const attempts = 4
	f, office := actual(t), memory.New(memory.Options{})
	f.Produce(t, broker.Publication{Channel: f.at.Mailbox, Value: []byte("order 7")})
	s, err := broker.New(broker.Config{Driver: f.open(t, Config{}), Office: office})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New(policy.Config{MaxAttempts: attempts, Backoff: policy.Backoff{Formula: policy.Fixed, Base: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testTimeout)
	defer stop()
	w, err := worker.New(worker.Config{Source: s, Policy: p, Observer: &nixie.Observer{
		Settled: func(_ string, list []nixie.Settlement, _ []error) {
			if list[0].Verb == nixie.Bury {
				stop()
			}
		}}, Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
		_ = d.Step(fmt.Sprint("step ", d.Attempts), func() error { return nil }) // it never fails
		return nixie.Transient(fmt.Errorf("failure %d", d.Attempts))
	})})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	letters, _, err := office.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	l := letters[0]
	for n, failed := range l.History {
		t.Logf("%d: %s", n+1, failed.Text)
		if failed.Text != fmt.Sprint("failure ", n+1) {
			t.Errorf("failure %d is %q", n+1, failed.Text)
		}
	}
	t.Logf("steps %q", l.Message.Steps)
	if len(l.History) != attempts || l.HistoryDropped != 0 || len(l.Message.Steps) != attempts || l.Message.Attempts != attempts {
		t.Errorf("%+v", l)
	}
}
