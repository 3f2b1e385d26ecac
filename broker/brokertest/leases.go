package brokertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// A record is with its holder for the lease, and for as long as that is renewed. Then another
// consumer gets it, and the first one has lost it.
func leasesEnd(t *testing.T, fixture Fixture) {
	d := join(t, fixture)
	if d.Features().Held {
		t.Skip("leases of this broker have no end")
	}
	const short = 200 * time.Millisecond
	fixture.Produce(t, numbered(fixture, 2)...)
	ctx := limited(t)
	begun := time.Now()
	got, err := d.Receive(ctx, broker.Want{Max: 2, Wait: timeout, Lease: short})
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	all(t, d.Extend(ctx, []*broker.Record{&got[1]}, timeout))
	again := receive(t, join(t, fixture), 1)[0]
	if early := short - time.Since(begun); again.ID != got[0].ID || early > 0 {
		t.Errorf("%q came %s early", again.Value, early)
	}
	errs := d.Ack(ctx, []*broker.Record{&got[0], &got[1]})
	if nixie.CodeOf(errs[0]) != nixie.CodeLeaseLost || errs[1] != nil {
		t.Errorf("acknowledged %v", errs)
	}
}

// A record that was published with a delay comes when that is over.
func delayed(t *testing.T, fixture Fixture) {
	d := join(t, fixture)
	if d.Features().MaxPublishDelay == 0 {
		t.Skip("this broker takes no delayed records")
	}
	const delay = 200 * time.Millisecond
	begun := time.Now()
	all(t, d.Publish(limited(t), []broker.Publication{
		{Channel: fixture.Source(), Value: []byte("never"), Delay: d.Features().MaxPublishDelay},
		{Channel: fixture.Source(), Value: []byte("late"), Delay: delay}, {Channel: fixture.Source(), Value: []byte("now")},
	})())
	for n, want := range []string{"now", "late"} {
		got := receive(t, d, 1)[0]
		if early := time.Duration(n)*delay - time.Since(begun); string(got.Value) != want || early > 0 {
			t.Errorf("%q came %s early, want %q", got.Value, early, want)
		}
	}
}

// A consumer that leaves in good order costs its records no attempt, and no suspicion if the broker
// can tell that from a crash.
func closeCostsNothing(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 3)...)
	for range 3 {
		d := fixture.Join(t)
		receive(t, d, 3)
		if err := d.Close(limited(t)); err != nil {
			t.Fatal(err)
		}
	}
	d := join(t, fixture)
	var mu sync.Mutex
	s := begin(t, d, workerPlan{policy: policy.Config{MaxAttempts: 1}, handle: func(_ context.Context, m *nixie.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if m.Attempts != 1 || m.Crashes > 0 && !d.Features().CountsAll {
			t.Errorf("attempt %d after %d crashes", m.Attempts, m.Crashes)
		}
		return nil
	}})
	s.until(t, "all succeeded", func() bool { return s.settled[nixie.Complete] == 3 })
	s.end(t)
}

// A record that fails without a delay runs as often as its policy allows.
func retriesEnd(t *testing.T, fixture Fixture) {
	const most = 5
	fixture.Produce(t, numbered(fixture, 1)...)
	var mu sync.Mutex
	var attempts []int
	plan := workerPlan{policy: policy.Config{MaxAttempts: most}, handle: func(_ context.Context, d *nixie.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, d.Attempts)
		if len(attempts) > 2*most {
			return nixie.Permanent(errBoom)
		}
		return errBoom
	}}
	s := begin(t, join(t, fixture), plan)
	s.until(t, "it is dead", func() bool { return s.settled[nixie.Bury] == 1 })
	s.end(t)
	if fmt.Sprint(attempts) != "[1 2 3 4 5]" {
		t.Errorf("attempts %v", attempts)
	}
}

// R14: a release costs no attempt, and a loop of releases ends by the bound on deliveries.
func releasesEnd(t *testing.T, fixture Fixture) {
	const most = 7
	fixture.Produce(t, numbered(fixture, 1)...)
	var mu sync.Mutex
	var seen []string
	bounds := policy.Config{MaxAttempts: 2, MaxDeliveries: most}
	plan := workerPlan{policy: bounds, handle: func(_ context.Context, d *nixie.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(d.Attempts, d.Deliveries))
		if len(seen) > 2*most {
			return nixie.Permanent(errBoom)
		}
		return nixie.Verdict(nixie.Release, errBoom)
	}}
	s := begin(t, join(t, fixture), plan)
	s.until(t, "it is dead", func() bool { return s.settled[nixie.Bury] == 1 })
	s.end(t)
	if fmt.Sprint(seen) != "[1 1 1 2 1 3 1 4 1 5 1 6 1 7]" {
		t.Errorf("attempts and deliveries %v", seen)
	}
}

// A record that vanished with a holder is judged once by the next one, and then it runs.
func judgedOnce(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 1)...)
	first := fixture.Join(t)
	receive(t, first, 1)
	fixture.Crash(t, first)
	var mu sync.Mutex
	judged := 0
	s := begin(t, join(t, fixture), workerPlan{
		handle: func(context.Context, *nixie.Delivery) error { return nil },
		observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) {
			mu.Lock()
			defer mu.Unlock()
			for _, st := range sts {
				if st.Delivery.Abandoned {
					judged++
				}
			}
		}},
	})
	s.until(t, "it ran, or was judged for ever", func() bool { return s.settled[nixie.Complete] == 1 || s.settled[nixie.Retry] > 9 })
	s.end(t)
	if judged > 1 || s.settled[nixie.Complete] != 1 {
		t.Errorf("judged %d times, settled %v", judged, s.settled)
	}
}

// The letter of a record that failed four times has all failures and steps. A broker that takes a
// retry back and cannot keep headers for it loses both; then the letter tells how many failures it
// does not know.
func lettersKnow(t *testing.T, fixture Fixture) { failFourTimes(t, fixture, join(t, fixture)) }

func lettersOfStagesKnow(t *testing.T, fixture Fixture) {
	failFourTimes(t, fixture, joinStages(t, fixture, stages()...))
}

func failFourTimes(t *testing.T, fixture Fixture, d broker.Driver) {
	const most = 4
	fixture.Produce(t, numbered(fixture, 1)...)
	st := memory.New(memory.Options{})
	f := d.Features()
	forgets := f.Nack && f.MaxDelay > 0 && !f.CountsAll && f.MaxPublishDelay == 0 && len(f.Stages) == 0
	s := begin(t, d, workerPlan{
		config: broker.Config{Office: st},
		policy: policy.Config{MaxAttempts: most,
			Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond, Jitter: policy.JitterNone}},
		handle: func(_ context.Context, d *nixie.Delivery) error {
			if err := d.Step(fmt.Sprint("step ", d.Attempts), func() error { return nil }); err != nil {
				return err
			}
			return fmt.Errorf("attempt %d", d.Attempts)
		},
	})
	s.until(t, "it is dead", func() bool { return s.settled[nixie.Bury] == 1 })
	s.end(t)
	letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	l := letters[0]
	known := most
	if forgets {
		known = 1
	}
	if len(l.History) != known || l.HistoryDropped != most-known || len(l.Message.Steps) != known || l.Message.Attempts != most {
		t.Errorf("%d failures and %d unknown ones, steps %q, %d attempts", len(l.History), l.HistoryDropped, l.Message.Steps,
			l.Message.Attempts)
	}
	if last := l.History[len(l.History)-1].Text; last != fmt.Sprint("attempt ", most) {
		t.Errorf("the last one is %q", last)
	}
}

// watchedDriver notes when the leases of records end at the broker, and how often it is told to
// take some back.
type watchedDriver struct {
	broker.Driver
	mu   sync.Mutex
	ends map[nixie.ID]time.Time // or a little later
	back int                    // calls of Nack
	full chan struct{}          // closed when n records were handed out
	n    int
}

func (w *watchedDriver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	end := time.Now().Add(want.Lease)
	got, err := w.Driver.Receive(ctx, want)
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range got {
		w.ends[got[n].ID] = end
	}
	if w.n > 0 && len(w.ends) == w.n {
		w.n = 0
		close(w.full)
	}
	return got, err
}

func (w *watchedDriver) Extend(ctx context.Context, records []*broker.Record, lease time.Duration) []error {
	w.mu.Lock()
	for _, r := range records {
		w.ends[r.ID] = time.Now().Add(lease)
	}
	w.mu.Unlock()
	return w.Driver.Extend(ctx, records, lease)
}

func (w *watchedDriver) Nack(ctx context.Context, list []broker.Return) []error {
	w.mu.Lock()
	w.back++
	w.mu.Unlock()
	return w.Driver.Nack(ctx, list)
}

// Records that wait in hand for another one of their key stay there, however long that takes, and
// no delivery has a lease that ends after that of the broker.
func waitingIsRenewed(t *testing.T, fixture Fixture) {
	const n, lease = 5, time.Second
	for i := range n {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Append(nil, i)})
	}
	w := &watchedDriver{Driver: join(t, fixture), ends: map[nixie.ID]time.Time{}, full: make(chan struct{}), n: n}
	if w.Features().Held {
		t.Skip("leases of this broker have no end")
	}
	var mu sync.Mutex
	var seen []string
	long := time.NewTimer(5 * lease / 2)
	s := begin(t, w, workerPlan{lease: lease, handle: func(ctx context.Context, d *nixie.Delivery) error {
		w.mu.Lock()
		end := w.ends[d.ID]
		w.mu.Unlock()
		mu.Lock()
		seen = append(seen, string(d.Body))
		if over := d.Lease.ExpiresAt.Sub(end); over > 0 || d.Deliveries != 1 {
			t.Errorf("%q: its lease ends %s after that of the broker; delivery %d", d.Body, over, d.Deliveries)
		}
		first := len(seen) == 1
		mu.Unlock()
		if first {
			select {
			case <-long.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}})
	other := join(t, fixture)
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	var stolen []broker.Record
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		select {
		case <-w.full:
		case <-ctx.Done():
		}
		for ctx.Err() == nil && len(stolen) == 0 {
			stolen, _ = other.Receive(ctx, broker.Want{Max: n, Wait: timeout, Lease: timeout})
		}
	}()
	s.until(t, "all succeeded", func() bool { return s.settled[nixie.Complete] == n || s.refused > 0 })
	cancel()
	<-looked
	s.end(t)
	if slices.Sort(seen); len(stolen) > 0 || fmt.Sprint(seen) != "[0 1 2 3 4]" {
		t.Errorf("another consumer got %d; %q ran", len(stolen), seen)
	}
}

// Releases go back in one call. Where the broker would count them, they stay in hand.
func manyGoBack(t *testing.T, fixture Fixture) {
	const n = 20
	fixture.Produce(t, numbered(fixture, n)...)
	w := &watchedDriver{Driver: join(t, fixture), ends: map[nixie.ID]time.Time{}}
	source, err := broker.New(broker.Config{Driver: w, Letters: broker.DefaultLetters})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		sts := map[nixie.ID]nixie.Settlement{}
		for ctx := limited(t); len(sts) < n && ctx.Err() == nil; {
			got, err := source.Receive(ctx, nixie.Want{Max: n, Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range got {
				if d.Attempts != 1 || d.Crashes > 0 {
					t.Errorf("round %d: attempt %d, %d crashes", round, d.Attempts, d.Crashes)
				}
				sts[d.ID] = nixie.Settlement{Delivery: d, Verb: nixie.Release}
			}
		}
		var list []nixie.Settlement
		for _, st := range sts {
			list = append(list, st)
		}
		all(t, source.Settle(limited(t), list))
		if f := w.Features(); w.back > round+1 || w.back > 0 && (f.CountsAll || !f.Nack) {
			t.Errorf("%d calls after %d rounds", w.back, round+1)
		}
	}
}

// A record that kills its consumers is the only one that does not succeed, however many were in
// hand with it.
func innocentsSucceed(t *testing.T, fixture Fixture) {
	const n, killer, mostKills = 60, "7", 12
	for i := range n {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Append(nil, i)})
	}
	var mu sync.Mutex
	done := map[string]bool{}
	for kills := 0; ; kills++ {
		if kills > mostKills {
			t.Fatalf("it killed %d consumers", kills)
		}
		d := &failingDriver{Driver: fixture.Join(t)}
		crash := make(chan struct{})
		var once sync.Once
		plan := workerPlan{config: broker.Config{Order: broker.ProcessUnordered}, parallel: 8}
		plan.handle = func(ctx context.Context, m *nixie.Delivery) error {
			if string(m.Body) == killer {
				once.Do(func() { close(crash) })
				<-ctx.Done()
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			done[string(m.Body)] = true
			return nil
		}
		s := begin(t, d, plan)
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.mu.Lock()
			defer s.mu.Unlock()
			for s.settled[nixie.Bury] == 0 && !slices.Contains(s.troubles, errLate) {
				s.changed.Wait()
			}
		}()
		select {
		case <-crash:
			d.crash(t, fixture, s)
			s.trouble("", errLate)
			<-over
			continue
		case <-over:
		case <-time.After(timeout):
			t.Fatal("no end")
		}
		s.until(t, "the others succeeded", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(done) == n-1 || s.settled[nixie.Bury] > 1
		})
		s.end(t)
		if err := d.Close(limited(t)); err != nil {
			t.Error(err)
		}
		break
	}
	list := fixture.Records(t, letters(fixture))
	if len(list) != 1 || string(list[0].Value) != killer || header(&list[0], broker.HeaderReason) != string(nixie.ReasonPoison) {
		t.Errorf("%d letters, the first %q: %q", len(list), list[0].Value, header(&list[0], broker.HeaderReason))
	}
}
