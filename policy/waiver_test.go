package policy

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// giveBack decides about one delivery of d after another, as a store would count them, until the
// message is not released any more.
func giveBack(t *testing.T, p *Policy, d *nixie.Delivery, err error) (last nixie.Settlement, took time.Duration) {
	t.Helper()
	for now := noon; d.Deliveries < 10_000; now = now.Add(last.Delay) {
		d.Attempts++
		d.Deliveries++
		f := p.Admit(d, now)
		if f == nil {
			f = p.Diagnose(d, err, Attempt{StartedAt: now, FailedAt: now})
		}
		last = p.Decide(d, f, now)
		if last.Verb != nixie.Release {
			return last, now.Sub(noon)
		}
		var refund int
		d.Patience, refund = lease.GivenBack(d.Patience, &last, false, now)
		d.Attempts -= refund
	}
	t.Fatalf("no end after %d deliveries", d.Deliveries)
	return last, 0
}

// TestSnoozesEndByAge lets a handler ask for another look until max_age ends it. A release without
// a time ends at max_deliveries.
func TestSnoozesEndByAge(t *testing.T) {
	for name, c := range map[string]struct {
		err        error
		cause      nixie.Cause
		deliveries int
		least      time.Duration
	}{
		"snooze":               {nixie.Snooze(nil, time.Minute), nixie.CauseMaxAge, 61, time.Hour},
		"release with a time":  {nixie.RetryAfter(nixie.Verdict(nixie.Release, nil), time.Minute), nixie.CauseMaxAge, 61, time.Hour},
		"release without time": {nixie.Verdict(nixie.Release, nil), nixie.CauseExhausted, 25, 24 * MinSpacing},
	} {
		d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}, Generation: 1, EnqueuedAt: noon}}
		last, took := giveBack(t, mustNew(t, Config{MaxAge: time.Hour}), d, c.err)
		if last.Burial == nil || last.Burial.Cause != c.cause || d.Deliveries != c.deliveries || took != c.least {
			t.Errorf("%s: after %s and %d deliveries %+v", name, took, d.Deliveries, last.Burial)
		}
	}
	d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}, Generation: 1, EnqueuedAt: noon}}
	now := mustNew(t, Config{}).Decide(d, mustNew(t, Config{}).Diagnose(d, nixie.Snooze(nil, 0), Attempt{}), noon)
	if now.Waiver != nixie.WaiveSnooze || now.Delay != MinSpacing {
		t.Errorf("snoozed until now: %+v", now)
	}
}

// TestUnknownTypesEnd leaves a message to workers that may know its type, until time is up.
func TestUnknownTypesEnd(t *testing.T) {
	p := mustNew(t, Config{})
	for within, most := range map[time.Duration]int{0: 1, 10 * time.Second: 9, 15 * time.Minute: 90} {
		d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1}, Generation: 1, Type: "refund", EnqueuedAt: noon}}
		err := nixie.Routes(nixie.UnknownTypes(within)).Handle(t.Context(), d)
		last, took := giveBack(t, p, d, err)
		b := last.Burial
		if last.Failure.Reason != nixie.ReasonUnknownType || b.Cause != nixie.CausePermanent || !b.Redrivable || b.NeedsReview {
			t.Errorf("within %s: %+v, %+v", within, last.Failure, b)
		}
		if took < within || took > within+MinSpacing || d.Deliveries > most {
			t.Errorf("within %s: after %s and %d deliveries", within, took, d.Deliveries)
		}
	}
}
