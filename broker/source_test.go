package broker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

var errBoom = errors.New("boom")

// produce adds n records to a log.
func produce(t *testing.T, l *brokertest.Log, n int) {
	t.Helper()
	for i := range n {
		l.Produce(t, broker.Publication{Channel: l.Source(), Key: fmt.Append(nil, i), Value: fmt.Append(nil, "value ", i)})
	}
}

func TestConfigIsChecked(t *testing.T) {
	d := brokertest.NewLog().Join(t)
	for name, c := range map[string]broker.Config{
		"no driver":        {Letters: broker.DefaultLetters},
		"no letters":       {Driver: d},
		"unknown order":    {Driver: d, Letters: "x", Order: "most"},
		"half a park":      {Driver: d, Letters: "x", ParkIn: "later"},
		"wrong braces":     {Driver: d, Letters: "{topic}.dlq"},
		"no space":         {Driver: d, Letters: "x", MaxInHand: -1},
		"no bytes":         {Driver: d, Letters: "x", MaxBytes: -1},
		"a queue too long": {Driver: d, Letters: "x", Queue: string(make([]byte, 300))},
	} {
		if _, err := broker.New(c); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// newSource makes a source, with a channel of letters unless the config has an office.
func newSource(t *testing.T, c broker.Config) *broker.Source {
	t.Helper()
	if c.Office == nil {
		c.Letters = broker.DefaultLetters
	}
	s, err := broker.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// receive receives n deliveries in one call.
func receive(t *testing.T, s *broker.Source, n int) []*nixie.Delivery {
	t.Helper()
	got, err := s.Receive(t.Context(), nixie.Want{Max: n})
	if err != nil || len(got) != n {
		t.Fatalf("%d deliveries of %d, %v", len(got), n, err)
	}
	return got
}

// sourceAfterCrash makes a source with one record, whose first holder crashed.
func sourceAfterCrash(t *testing.T) *broker.Source {
	t.Helper()
	box := brokertest.NewMailbox()
	box.Produce(t, broker.Publication{Channel: box.Source(), Value: []byte("v")})
	first := box.Join(t)
	if got, err := first.Receive(t.Context(), broker.Want{Max: 1, Lease: time.Minute}); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	box.Crash(t, first)
	return newSource(t, broker.Config{Driver: box.Join(t)})
}

// A parked message goes on counting, keeps its content and what it knows of its redrive, and is
// parked once.
func TestParked(t *testing.T) {
	l := brokertest.NewLog()
	l.Produce(t, broker.Publication{Channel: l.Source(), Key: []byte("k"), Value: []byte("v"),
		Headers: []broker.RecordHeader{{Name: "theirs", Value: []byte{0xff}}, {Name: broker.HeaderRedriveCount, Value: []byte("2")},
			{Name: broker.HeaderRedrivenAt, Value: []byte("1600000000000")},
			{Name: broker.HeaderFirstFailureAt, Value: []byte("1500000000000")},
			{Name: broker.HeaderOperation, Value: []byte(nixie.ID{7}.String())}}})
	st := memory.New(memory.Options{})
	d := l.Join(t)
	s := newSource(t, broker.Config{Driver: d, Office: st, Park: st, ParkIn: "later"})
	p, err := policy.New(policy.Config{MaxAttempts: 3, Backoff: policy.Backoff{Base: -1}})
	if err != nil {
		t.Fatal(err)
	}
	attempts := make(chan int, 9)
	handle := nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
		if err := d.Step("once", func() error { attempts <- 0; return nil }); err != nil {
			return err
		}
		if d.Redrives != 2 || d.Generation != 3 || d.RedrivenAt.UnixMilli() != 1600000000000 || d.Operation != (nixie.ID{7}) ||
			d.FirstFailedAt.UnixMilli() != 1500000000000 || d.EnqueuedAt.After(d.Origin.Timestamp) {
			t.Errorf("attempt %d: %+v", d.Attempts, d)
		}
		attempts <- d.Attempts
		return errBoom
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan error, 2)
	dead := make(chan nixie.Settlement, 1)
	for _, source := range []nixie.Source{s, broker.Parked(store.NewSource(st, "later"))} {
		w, err := worker.New(worker.Config{Source: source, Policy: p, Handler: handle,
			Observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) {
				if sts[0].Burial != nil {
					dead <- sts[0]
				}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ran <- w.Run(ctx) }()
	}
	select {
	case <-dead:
	case <-time.After(30 * time.Second):
		t.Fatal("it did not die")
	}
	cancel()
	for range 2 {
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
	close(attempts)
	var seen []int
	for n := range attempts {
		seen = append(seen, n)
	}
	if fmt.Sprint(seen) != "[0 1 2 3]" { // the step ran once
		t.Errorf("attempts %v", seen)
	}
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	if m := letters[0].Message; m.Origin == nil || string(m.Origin.Key) != "k" || string(m.Body) != "v" || m.Key != "k" {
		t.Errorf("%+v", m)
	}
	for _, f := range letters[0].History {
		if f.Generation != letters[0].Message.Generation {
			t.Errorf("a failure of generation %d, the message has %d", f.Generation, letters[0].Message.Generation)
		}
	}
	if errs := d.Ack(t.Context(), nil); len(errs) > 0 {
		t.Error(errs)
	}
}

// The source holds no more records and bytes than allowed, and a settlement makes space.
func TestInHandIsLimited(t *testing.T) {
	for name, c := range map[string]broker.Config{"number": {MaxInHand: 7}, "bytes": {MaxBytes: 1}} {
		t.Run(name, func(t *testing.T) {
			l := brokertest.NewLog()
			produce(t, l, 100)
			c.Driver = l.Join(t)
			c.Order = broker.ProcessUnordered // keys may share a serial queue
			s := newSource(t, c)
			got := receive(t, s, 7)
			if more, err := s.Receive(t.Context(), nixie.Want{Max: 7, Wait: time.Millisecond}); len(more) > 0 || err != nil {
				t.Errorf("%d more, %v", len(more), err)
			}
			settle(t, s, got[0])
			want := 1
			if name == "bytes" {
				for _, d := range got[1:] {
					settle(t, s, d)
				}
				want = 7
			}
			if more, err := s.Receive(t.Context(), nixie.Want{Max: 7, Wait: time.Minute}); len(more) != want || err != nil {
				t.Errorf("%d more, want %d: %v", len(more), want, err)
			}
		})
	}
}

func settle(t *testing.T, s *broker.Source, d *nixie.Delivery) {
	t.Helper()
	if err := s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0]; err != nil {
		t.Error(err)
	}
}

// A second settlement is refused, in another call and in the same one.
func TestSettledOnce(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 2)
	s := newSource(t, broker.Config{Driver: l.Join(t),
		Order: broker.ProcessUnordered}) // keys may share a serial queue
	got := receive(t, s, 2)
	done := nixie.Settlement{Delivery: got[0], Verb: nixie.Complete}
	if errs := s.Settle(t.Context(), []nixie.Settlement{done, done}); errs[0] != nil || nixie.CodeOf(errs[1]) != nixie.CodeConflict {
		t.Error(errs)
	}
	if err := s.Settle(t.Context(), []nixie.Settlement{done})[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
	if err := s.Extend(t.Context(), []*nixie.Delivery{lease.Renewal(got[0], nil)},
		time.Second)[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
	if err := s.Extend(t.Context(), []*nixie.Delivery{lease.Renewal(got[1], nil)}, time.Second)[0]; err != nil {
		t.Error(err)
	}
}

// After a halt the source delivers nothing more.
func TestHalt(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 5)
	s := newSource(t, broker.Config{Driver: l.Join(t)})
	got := receive(t, s, 1)
	halt := nixie.Settlement{Delivery: got[0], Verb: nixie.Halt, Failure: &nixie.Failure{Text: "boom"},
		Burial: &nixie.Burial{Cause: nixie.CausePermanent}}
	if err := s.Settle(t.Context(), []nixie.Settlement{halt})[0]; err != nil {
		t.Fatal(err)
	}
	if more, err := s.Receive(t.Context(), nixie.Want{Max: 5, Wait: time.Millisecond}); len(more) > 0 || err != nil {
		t.Errorf("%d after a halt, %v", len(more), err)
	}
	if n := len(l.Records(t, l.Source()+".dlq")); n != 1 {
		t.Errorf("%d letters", n)
	}
}

// Records that a consumer lost before a worker got them are not delivered.
func TestLostBeforeItIsHandedOut(t *testing.T) {
	l := brokertest.NewLog()
	for range 20 {
		l.Produce(t, broker.Publication{Channel: l.Source(), Key: []byte("one"), Value: []byte("v")})
	}
	first := l.Join(t)
	s := newSource(t, broker.Config{Driver: first})
	got, err := s.Receive(t.Context(), nixie.Want{Max: 20})
	if err != nil || len(got) != 1 { // the others of its key wait
		t.Fatal(len(got), err)
	}
	alarm := s.LeasesLost()
	l.Join(t)
	l.Join(t)
	select {
	case <-alarm:
	default:
		t.Fatal("the part stayed where it is: nothing was tested")
	}
	if more, err := s.Receive(t.Context(), nixie.Want{Max: 20}); len(more) > 0 || err != nil {
		t.Errorf("%d more, %v", len(more), err)
	}
	if err := s.Settle(t.Context(), []nixie.Settlement{{Delivery: got[0], Verb: nixie.Complete}})[0]; nixie.CodeOf(
		err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
	if more, err := s.Receive(t.Context(), nixie.Want{Max: 20, Wait: time.Millisecond}); len(more) > 0 || err != nil {
		t.Errorf("%d more, %v", len(more), err)
	}
}

// torn is a driver that loses its records while a letter is published.
type torn struct {
	broker.Driver
	publishing, extended chan struct{}
	lost                 bool
}

func (d *torn) Publish(ctx context.Context, list []broker.Publication) func() []error {
	close(d.publishing)
	<-d.extended
	return d.Driver.Publish(ctx, list)
}

func (d *torn) Extend(ctx context.Context, records []*broker.Record, lease time.Duration) []error {
	if !d.lost {
		return d.Driver.Extend(ctx, records, lease)
	}
	return refused(len(records))
}

func (d *torn) Ack(ctx context.Context, records []*broker.Record) []error {
	if !d.lost {
		return d.Driver.Ack(ctx, records)
	}
	return refused(len(records))
}

func refused(n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "it is lost")
	}
	return errs
}

// A record that is lost during its settlement is dropped once: later items have leases of their
// own.
func TestLostWhileItIsSettled(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 3)
	d := &torn{Driver: l.Join(t), publishing: make(chan struct{}), extended: make(chan struct{})}
	s := newSource(t, broker.Config{Driver: d})
	got := receive(t, s, 1)
	settled := make(chan error)
	bury := nixie.Settlement{Delivery: got[0], Verb: nixie.Bury, Failure: &nixie.Failure{Text: "boom"},
		Burial: &nixie.Burial{Cause: nixie.CausePermanent}}
	go func() { settled <- s.Settle(t.Context(), []nixie.Settlement{bury})[0] }()
	<-d.publishing
	d.lost = true
	if err := s.Extend(t.Context(), []*nixie.Delivery{lease.Renewal(got[0], nil)},
		time.Minute)[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
	close(d.extended)
	if err := <-settled; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Error(err)
	}
	d.lost = false
	var rest []*nixie.Delivery
	for len(rest) < 2 {
		more, err := s.Receive(t.Context(), nixie.Want{Max: 1, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, more...)
	}
	for _, r := range rest {
		settle(t, s, r)
	}
}

// A worker may renew the lease of a delivery while it is settled, so a retry gets another delivery.
func TestRetryIsAnotherDelivery(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 1)
	s := newSource(t, broker.Config{Driver: l.Join(t)})
	first := receive(t, s, 1)
	lease, attempts := first[0].Lease, first[0].Attempts
	if errs := s.Settle(t.Context(), []nixie.Settlement{{Delivery: first[0], Verb: nixie.Retry,
		Failure: &nixie.Failure{Text: "boom"}}}); errs[0] != nil {
		t.Fatal(errs)
	}
	second, err := s.Receive(t.Context(), nixie.Want{Max: 1})
	if err != nil || len(second) != 1 || second[0].Attempts != 2 || second[0].LastFailure != "boom" {
		t.Fatal(second, err)
	}
	if first[0] == second[0] || first[0].Lease != lease || first[0].Attempts != attempts || first[0].LastFailure != "" {
		t.Errorf("the first delivery changed: %+v", first[0])
	}
}

// A holder that asks for a retry has survived: the next delivery counts no crash, and the earlier
// one does not change.
func TestRetryCountsNoCrash(t *testing.T) {
	s := sourceAfterCrash(t)
	for n, crashes := range []int{1, 1, 0} { // judged, run, run again
		ds, err := s.Receive(t.Context(), nixie.Want{Max: 1})
		if err != nil || len(ds) != 1 || ds[0].Crashes != crashes || ds[0].Abandoned != (n == 0) {
			t.Fatalf("delivery %d: %+v, %v", n, ds, err)
		}
		if err := s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Retry}})[0]; err != nil {
			t.Fatal(err)
		}
		if ds[0].Crashes != crashes {
			t.Errorf("delivery %d: it was changed to %d crashes", n, ds[0].Crashes)
		}
	}
}

// looking is a queue that reads a delivery while its settlement is under way.
type looking struct {
	nixie.Source
	at   *nixie.Delivery
	seen nixie.Message
}

func (l *looking) Receive(context.Context, nixie.Want) ([]*nixie.Delivery, error) {
	return []*nixie.Delivery{l.at}, nil
}

func (l *looking) Settle(_ context.Context, sts []nixie.Settlement) []error {
	l.seen = l.at.Message
	return []error{nixie.Errorf(nixie.CodeInternal, "attempts of the store: %d", sts[0].Delivery.Attempts)}
}

// Parked subtracts earlier counts from what it gives to the store, not from the delivery, which its
// worker may still read.
func TestParkedDeliveryStaysAsItIs(t *testing.T) {
	queue := &looking{at: &nixie.Delivery{Message: nixie.Message{Attempts: 1,
		Headers: []nixie.Header{{Name: broker.HeaderAttempts, Value: "2"}}}}}
	s := broker.Parked(queue)
	ds, err := s.Receive(t.Context(), nixie.Want{Max: 1})
	if err != nil || ds[0].Attempts != 3 {
		t.Fatal(ds, err)
	}
	err = s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Retry}})[0]
	if queue.seen.Attempts != 3 || fmt.Sprint(err) != "attempts of the store: 1" {
		t.Errorf("%d attempts while it was settled, %v", queue.seen.Attempts, err)
	}
}

// The source stores no letter and no retry of a record that another consumer has by now: that one
// decides about it.
func TestLostRecordsAreNotStored(t *testing.T) {
	for _, verb := range []nixie.Verb{nixie.Bury, nixie.Retry} {
		l, st := brokertest.NewLog(), memory.New(memory.Options{})
		produce(t, l, 40)
		stage := broker.Stage{Channel: "{source}.later", Delay: time.Minute}
		s := newSource(t, broker.Config{Driver: l.Join(t, stage), Letters: broker.DefaultLetters, Office: st,
			Order: broker.ProcessUnordered})
		got := receive(t, s, 40)
		l.Join(t, stage) // it gets some of the partitions
		failure := &nixie.Failure{Class: nixie.ClassPermanent, Reason: nixie.ReasonHandler, Text: "boom", FailedAt: time.Now()}
		sts := make([]nixie.Settlement, len(got))
		for i, d := range got {
			sts[i] = nixie.Settlement{Delivery: d, Verb: verb, Delay: time.Second, Failure: failure,
				Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen}}
		}
		lost := 0
		for _, err := range s.Settle(t.Context(), sts) {
			switch nixie.CodeOf(err) {
			case nixie.CodeLeaseLost:
				lost++
			case "":
			default:
				t.Error(err)
			}
		}
		if lost == 0 || lost == len(got) {
			t.Fatalf("%s: %d of %d are lost: nothing was tested", verb, lost, len(got))
		}
		letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		there, kept := len(l.Records(t, broker.ChannelName(broker.DefaultLetters, l.Source()))), len(got)-lost
		later := len(l.Records(t, stage.Of(l.Source())))
		if verb == nixie.Bury && (there != kept || len(letters) != kept) || verb == nixie.Retry && later != kept {
			t.Errorf("%s: %d are ours, %d letters on the channel, %d in the office, %d retries", verb, kept, there, len(letters), later)
		}
	}
}

// A record that is released before it was judged is still to be judged, and its release returns no
// attempt, because it had none.
func TestReleasedBeforeItIsJudged(t *testing.T) {
	s := sourceAfterCrash(t)
	for range 3 {
		d := receive(t, s, 1)[0]
		if !d.Abandoned || d.Attempts != 0 || d.Crashes != 1 {
			t.Fatalf("%+v", d)
		}
		if err := s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Release}})[0]; err != nil {
			t.Fatal(err)
		}
	}
}

// marked is a driver that reports a crash of the first record.
type marked struct{ broker.Driver }

func (d marked) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	got, err := d.Driver.Receive(ctx, want)
	for i := range got {
		if string(got[i].Value) == "value 0" {
			got[i].Crashes = 1
		}
	}
	return got, err
}

// A worker with something in hand gets no new records while a suspect waits for an empty hand.
// Otherwise the suspect might never run.
func TestSuspectsDoNotStarve(t *testing.T) {
	l := brokertest.NewLog()
	produce(t, l, 8)
	s := newSource(t, broker.Config{Driver: marked{l.Join(t)}})
	receive := func(fresh bool) []*nixie.Delivery {
		got, err := s.Receive(t.Context(), nixie.Want{Max: 8, NoSuspects: fresh, Parallel: 8})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	judged := receive(false)
	for len(judged) > 0 && !judged[0].Abandoned {
		judged = receive(true)
	}
	if len(judged) != 1 || !judged[0].Abandoned {
		t.Fatalf("%d are to be judged", len(judged))
	}
	st := nixie.Settlement{Delivery: judged[0], Verb: nixie.Retry, Failure: &nixie.Failure{Reason: nixie.ReasonLeaseExpired}}
	if errs := s.Settle(t.Context(), []nixie.Settlement{st}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if got := receive(true); len(got) > 0 {
		t.Errorf("%d fresh ones", len(got))
	}
	if got := receive(false); len(got) != 1 || got[0].Crashes != 1 {
		t.Errorf("%d suspects", len(got))
	}
}

// A key waits for no other one, however many there are: a letter that no broker confirmed once held
// up a key that had the same row of the table.
func TestKeysDoNotWaitForEachOther(t *testing.T) {
	const keys = 3000
	l := brokertest.NewLog()
	s := newSource(t, broker.Config{Driver: l.Join(t), MaxInHand: 3 * keys})
	produce(t, l, keys)
	first := receive(t, s, keys)
	produce(t, l, keys)
	receive(t, s, 0) // a key waits for itself
	sts := make([]nixie.Settlement, keys)
	for i, d := range first {
		sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	}
	if err := errors.Join(s.Settle(t.Context(), sts)...); err != nil {
		t.Fatal(err)
	}
	receive(t, s, keys)
}

// A broker gives each message that follows a key of its own, and refuses others: the handler is
// told at once, a decider when it settles.
func TestFollowersHaveNoKeysOfTheirOwn(t *testing.T) {
	log := brokertest.NewLog()
	produce(t, log, 1)
	s := newSource(t, broker.Config{Driver: log.Join(t)})
	ds, err := s.Receive(t.Context(), nixie.Want{Max: 1, Wait: time.Minute, Lease: time.Minute})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	keyed := nixie.Message{Queue: "next", DedupeKey: "k"}
	if err := ds[0].Then(keyed); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("Then: %v", err)
	}
	st := nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete, Then: []nixie.Message{keyed}}
	if err := s.Settle(t.Context(), []nixie.Settlement{st})[0]; nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("Settle: %v", err)
	}
}
