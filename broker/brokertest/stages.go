package brokertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// stages returns two short stages.
func stages() []broker.Stage {
	return []broker.Stage{{Channel: "{source}.retry.50ms", Delay: 50 * time.Millisecond},
		{Channel: "{source}.retry.200ms", Delay: 200 * time.Millisecond}}
}

// joinStages adds a consumer with stages. It skips the test if the driver has none and its channels
// take no delayed records. A channel that takes them is its own stage.
func joinStages(t *testing.T, fixture Fixture, list ...broker.Stage) broker.Driver {
	t.Helper()
	d := join(t, fixture, list...)
	if f := d.Features(); len(f.Stages) == 0 && f.MaxPublishDelay == 0 {
		t.Skip("retries of this broker wait on no channel")
	}
	return d
}

// ownStage reports whether a channel of the driver is its own stage.
func ownStage(d broker.Driver) bool { return len(d.Features().Stages) == 0 }

// Records on a stage come when they are due, not sooner, in order, and delay no others.
func stagesKeepBack(t *testing.T, fixture Fixture) {
	const n, delay = 4, 500 * time.Millisecond
	soon, never := broker.Stage{Channel: "{source}.retry.500ms", Delay: delay}, broker.Stage{Channel: "{source}.retry.1h", Delay: time.Hour}
	d := joinStages(t, fixture, soon, never)
	due := map[string]time.Time{}
	publish := func(stage broker.Stage, value string) {
		at := time.Now().Add(stage.Delay).Truncate(time.Millisecond)
		due[value] = at
		r := broker.Publication{
			Channel: stage.Of(fixture.Source()), Key: []byte("one"), Value: []byte(value),
			Headers: []broker.RecordHeader{{Name: broker.HeaderDue, Value: strconv.AppendInt(nil, at.UnixMilli(), 10)}},
		}
		if ownStage(d) {
			r.Channel, r.Delay = fixture.Source(), min(stage.Delay, d.Features().MaxPublishDelay)
		}
		all(t, d.Publish(limited(t), []broker.Publication{r})())
	}
	publish(never, "never")
	for i := range n {
		publish(soon, fmt.Sprint("late ", i))
	}
	fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Value: []byte("now")})
	got := receive(t, d, n+1)
	var late []string
	for _, r := range got {
		at, staged := due[string(r.Value)]
		if early := time.Until(at); staged && early > 0 {
			t.Errorf("%q came %s early", r.Value, early)
		}
		if staged {
			late = append(late, string(r.Value))
		}
		if want := map[bool]string{true: fixture.Source()}[staged && !ownStage(d)]; r.Source != want {
			t.Errorf("%q of %s says that it came from %q", r.Value, r.Channel, r.Source)
		}
	}
	if len(late) != n || d.Features().Ordered && !slices.IsSorted(late) {
		t.Errorf("came late: %q", late)
	}
	all(t, d.Ack(t.Context(), got))
}

// A retry waits on the first stage that is long enough. It comes back as the same message and goes
// on counting. Its letter tells where it came from first, and all its failures.
func stageToStage(t *testing.T, fixture Fixture) {
	d := joinStages(t, fixture, stages()...)
	sent := oddRecords()
	for i := range sent {
		sent[i].Channel = fixture.Source()
	}
	fixture.Produce(t, sent...)
	var mu sync.Mutex
	seen := map[nixie.ID][]int{}
	s := begin(t, d, workerPlan{
		policy: policy.Config{MaxAttempts: 4, Backoff: policy.Backoff{Formula: policy.List, Base: 1,
			Delays: []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Second}, Min: 10 * time.Millisecond,
			Jitter: policy.JitterNone}},
		handle: func(_ context.Context, d *nixie.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			seen[d.ID] = append(seen[d.ID], d.Attempts)
			if d.Queue != fixture.Source() || d.Origin.Channel != fixture.Source() {
				t.Errorf("queue %s, origin %+v", d.Queue, d.Origin)
			}
			return fmt.Errorf("attempt %d", d.Attempts)
		},
	})
	s.until(t, "all are dead", func() bool { return s.settled[nixie.Bury] == len(sent) })
	s.end(t)
	for id, attempts := range seen {
		if fmt.Sprint(attempts) != "[1 2 3 4]" {
			t.Errorf("%s: attempts %v", id, attempts)
		}
	}
	if len(seen) != len(sent) {
		t.Errorf("%d messages of %d", len(seen), len(sent))
	}
	for n, want := range []int{1, 2} {
		name := stages()[n].Of(fixture.Source())
		if got := len(fixture.Records(t, name)); !ownStage(d) && got != want*len(sent) {
			t.Errorf("%d were on %s, want %d", got, name, want*len(sent))
		}
	}
	lettersOfStages(t, fixture, sent)
}

// lettersOfStages checks the letters of records that died after four attempts.
func lettersOfStages(t *testing.T, fixture Fixture, sent []broker.Publication) {
	t.Helper()
	first := fixture.Records(t, fixture.Source())
	positions := map[string]bool{}
	for _, r := range first {
		positions[fmt.Sprint(r.Partition, "/", r.Offset)] = true
	}
	list := fixture.Records(t, letters(fixture))
	if len(list) != len(sent) {
		t.Fatalf("%d letters of %d", len(list), len(sent))
	}
	for _, l := range list {
		position := header(&l, broker.HeaderPartition) + "/" + header(&l, broker.HeaderOffset)
		if header(&l, broker.HeaderTopic) != fixture.Source() || !positions[position] && len(first) > 0 && first[0].Offset >= 0 ||
			header(&l, broker.HeaderAttempts) != "4" || header(&l, broker.HeaderDue) != "" {
			t.Errorf("headers %q", l.Headers)
		}
		delete(positions, position)
		if history := header(&l, broker.HeaderHistory); !containsAll(history, "attempt 1", "attempt 2", "attempt 3", "attempt 4") {
			t.Errorf("history %s", history)
		}
		found := false
		for n := range sent {
			found = found || sameLetter(&sent[n], &l)
		}
		if !found {
			t.Errorf("letter with key %q is not what was sent: %q", l.Key, l.Headers)
		}
	}
}

// A retry waits on the partition of its record, also where the key would choose another one.
func retriesKeepPartition(t *testing.T, fixture Fixture) {
	d := join(t, fixture, stages()...)
	if f := d.Features(); !f.Ordered || len(f.Stages) == 0 {
		t.Skip("retries of this broker wait on no partition")
	}
	var sent []broker.Publication
	for i := range 6 {
		at := int32(i % 2)
		sent = append(sent, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Append(nil, i), Partition: &at})
	}
	all(t, d.Publish(limited(t), sent)())
	s := begin(t, d, workerPlan{
		policy: policy.Config{MaxAttempts: 3, Backoff: policy.Backoff{Formula: policy.List, Base: 1,
			Delays: []time.Duration{20 * time.Millisecond, 100 * time.Millisecond}, Min: 10 * time.Millisecond, Jitter: policy.JitterNone}},
		handle: func(context.Context, *nixie.Delivery) error { return errBoom },
	})
	s.until(t, "all are dead", func() bool { return s.settled[nixie.Bury] == len(sent) })
	s.end(t)
	for _, stage := range stages() {
		there := partitionsOf(fixture.Records(t, stage.Of(fixture.Source())))
		for i := range sent {
			if at, is := there[fmt.Sprint(i)]; !is || at != int32(i%2) {
				t.Errorf("record %d is on partition %d of %s: %v", i, at, stage.Of(fixture.Source()), there)
			}
		}
	}
}

// A record is not done before its retry is on a stage.
func noAckBeforeTheRetry(t *testing.T, fixture Fixture) {
	fails := workerPlan{
		policy: policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond, Jitter: policy.JitterNone}},
		handle: func(_ context.Context, d *nixie.Delivery) error {
			if d.Attempts == 1 {
				return errBoom
			}
			return nil
		},
	}
	const n = 5
	first := &failingDriver{Driver: fixture.Join(t, stages()...), publish: nixie.Errorf(nixie.CodeUnavailable, "no retries now")}
	if f := first.Features(); len(f.Stages) == 0 && f.MaxPublishDelay == 0 {
		t.Skip("retries of this broker wait on no channel")
	}
	fixture.Produce(t, numbered(fixture, n)...)
	s := begin(t, first, fails)
	s.until(t, "all were refused", func() bool { return s.refused >= n })
	first.crash(t, fixture, s)
	s = begin(t, join(t, fixture, stages()...), fails)
	s.until(t, "all succeeded", func() bool { return s.settled[nixie.Complete] == n })
	s.end(t)
	if s.settled[nixie.Retry] < n { // more, if some were judged
		t.Errorf("settled %v", s.settled)
	}
}

// No record on a stage is lost when consumers come and go.
func stagesAreShared(t *testing.T, fixture Fixture) {
	const n = 60
	var mu sync.Mutex
	done := map[string]bool{}
	work := workerPlan{
		policy: policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond, Jitter: policy.JitterNone}},
		handle: func(_ context.Context, d *nixie.Delivery) error {
			if d.Attempts < 3 {
				return errBoom
			}
			mu.Lock()
			defer mu.Unlock()
			done[string(d.Body)] = true
			return nil
		},
	}
	first := &failingDriver{Driver: fixture.Join(t, stages()...)}
	if f := first.Features(); len(f.Stages) == 0 && f.MaxPublishDelay == 0 {
		t.Skip("retries of this broker wait on no channel")
	}
	fixture.Produce(t, numbered(fixture, n)...)
	one := begin(t, first, work)
	one.until(t, "some wait", func() bool { return one.settled[nixie.Retry] > n/4 })
	two := begin(t, join(t, fixture, stages()...), work)
	one.until(t, "all wait, or went", func() bool { return one.settled[nixie.Retry] > n/2 })
	first.crash(t, fixture, one)
	all := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(done)
	}
	two.until(t, "all are done", func() bool { return all() == n })
	two.end(t)
}
