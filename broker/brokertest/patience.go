package brokertest

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// waived receives the one record of a source again and again, and gives it back.
type waived struct {
	*testing.T
	source *broker.Source
}

func (w *waived) receive() *nixie.Delivery {
	w.Helper()
	for ctx := limited(w); ctx.Err() == nil; {
		got, err := w.source.Receive(ctx, nixie.Want{Max: 1, Wait: time.Second, Lease: timeout})
		if err != nil {
			w.Fatal(err)
		}
		if len(got) == 1 {
			return got[0]
		}
	}
	w.Fatal("the record does not come again")
	return nil
}

func (w *waived) giveBack(d *nixie.Delivery, st nixie.Settlement) {
	w.Helper()
	if st.Delivery = d; st.Verb == nixie.Retry {
		st.Failure = &nixie.Failure{FailedAt: time.Now(), Attempt: d.Attempts, Generation: d.Generation, Reason: nixie.ReasonTimeout,
			Text: "no"}
	}
	all(w.T, w.source.Settle(limited(w.T), []nixie.Settlement{st}))
}

// A waived release and a waived try cost no attempt, and are counted as free. What the broker has
// taken back, or keeps on a stage, outlives its holder.
func waivedCostNothing(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 1)...)
	open := func() (broker.Driver, *waived) {
		driver := fixture.Join(t, stages()...)
		source, err := broker.New(broker.Config{Driver: driver, Letters: broker.DefaultLetters})
		if err != nil {
			t.Fatal(err)
		}
		return driver, &waived{t, source}
	}
	driver, w := open()
	w.giveBack(w.receive(), nixie.Settlement{Verb: nixie.Release, Waiver: nixie.WaiveSnooze})
	w.giveBack(w.receive(), nixie.Settlement{Verb: nixie.Release, Waiver: nixie.WaiveUnknown})
	w.giveBack(w.receive(), nixie.Settlement{Verb: nixie.Retry, Waiver: nixie.WaiveTry, Delay: 10 * time.Millisecond})
	d := w.receive()
	p := d.Patience
	if d.Attempts != 1 || d.Deliveries != 4 || p.Free != 3 || p.Tries != 1 || p.FailingSince.IsZero() || p.RefusedSince.IsZero() {
		t.Errorf("attempts %d, deliveries %d, patience %+v", d.Attempts, d.Deliveries, p)
	}
	w.giveBack(d, nixie.Settlement{Verb: nixie.Retry, Delay: 10 * time.Millisecond})
	d = w.receive()
	if since := d.Patience.FailingSince; d.Attempts != 2 || d.Patience.Free != 3 || !since.Equal(p.FailingSince) {
		t.Errorf("attempts %d, patience %+v, it failed first at %s", d.Attempts, d.Patience, p.FailingSince)
	}
	kept := d.Patience
	w.giveBack(d, nixie.Settlement{Verb: nixie.Release, Waiver: nixie.WaiveSnooze})
	f := driver.Features()
	if f.Nack && !f.CountsAll {
		kept.Free++
	} else if len(f.Stages) == 0 {
		kept = nixie.Patience{}
	}
	fixture.Crash(t, driver)
	driver, w = open()
	d = w.receive()
	if got := d.Patience; got.Free != kept.Free || got.Tries != kept.Tries || !got.FailingSince.Equal(kept.FailingSince) ||
		!got.RefusedSince.Equal(kept.RefusedSince) {
		t.Errorf("patience after a crash %+v, want %+v", got, kept)
	}
	w.giveBack(d, nixie.Settlement{Verb: nixie.Complete})
	if err := driver.Close(limited(t)); err != nil {
		t.Error(err)
	}
}
