package brokertest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// redrivenKnow shows what a delivery knows of the redrive that sent its record. Its age counts from
// there, also after a retry, and its letter has the moment. Without a redrive it knows nothing.
func redrivenKnow(t *testing.T, fixture Fixture) { redrivenOnesKnow(t, fixture, join(t, fixture)) }

// redrivenOnesKnowOnStages is redrivenKnow with retries that wait on channels.
func redrivenOnesKnowOnStages(t *testing.T, fixture Fixture) {
	redrivenOnesKnow(t, fixture, joinStages(t, fixture, stages()...))
}

func redrivenOnesKnow(t *testing.T, fixture Fixture, d broker.Driver) {
	back := broker.Returning{
		Publication: broker.Publication{Channel: fixture.Source(), Value: []byte("again")},
		Letter:      nixie.ID{1}, Operation: nixie.ID{2}, Redrives: 1, FirstFailed: time.UnixMilli(1_700_000_000_000),
		Origin: nixie.Origin{Partition: -1, Offset: -1},
	}
	at := time.UnixMilli(time.Now().Add(-time.Hour).UnixMilli())
	sent := back.Redriven(at)
	sent.Channel, sent.Origin = fixture.Source(), nil
	fixture.Produce(t, sent, broker.Publication{Channel: fixture.Source(), Value: []byte("new"),
		Headers: []broker.RecordHeader{{Name: broker.HeaderFirstFailureAt, Value: []byte("1700000000000")}}})
	plan := workerPlan{policy: policy.Config{MaxAttempts: 2, MaxAge: 2 * time.Hour,
		Backoff: policy.Backoff{Formula: policy.Fixed, Base: time.Millisecond, Jitter: policy.JitterNone}}}
	plan.handle = func(_ context.Context, d *nixie.Delivery) error {
		redriven := string(d.Body) == "again"
		switch {
		case !redriven && (d.Redrives != 0 || !d.RedrivenAt.IsZero() || !d.Operation.IsZero() || !d.FirstFailedAt.IsZero()):
			t.Errorf("a new record: %+v", d)
		case redriven && (d.Redrives != 2 || d.Generation != 3 || !d.RedrivenAt.Equal(at) || !d.Since().Equal(at) ||
			d.Operation != back.Operation || !d.FirstFailedAt.Equal(back.FirstFailed)):
			t.Errorf("attempt %d of a redriven one: %+v", d.Attempts, d)
		}
		return errBoom
	}
	s := begin(t, d, plan)
	s.until(t, "both are dead", func() bool { return s.settled[nixie.Bury] == 2 })
	s.end(t)
	if s.settled[nixie.Retry] != 2 {
		t.Errorf("settled %v", s.settled)
	}
	for _, l := range fixture.Records(t, letters(fixture)) {
		want := ""
		if string(l.Value) == "again" {
			want = strconv.FormatInt(at.UnixMilli(), 10)
		}
		if got := header(&l, broker.HeaderRedrivenAt); got != want || header(&l, broker.HeaderFirstFailureAt) != "1700000000000" {
			t.Errorf("letter of %s: redriven at %q, want %q", l.Value, got, want)
		}
		if m := broker.Adopted("it", &l, "").Message; (want == "") != m.RedrivenAt.IsZero() || want != "" && !m.RedrivenAt.Equal(at) {
			t.Errorf("adopted letter of %s: redriven %s", l.Value, m.RedrivenAt)
		}
	}
}
