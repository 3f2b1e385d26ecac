package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// desk decides about the outbox by a profile.
func (o *outbox) desk(c policy.Config) *worker.Desk {
	o.Helper()
	p, err := policy.New(c)
	o.must(err)
	d, err := worker.NewDesk(worker.Config{Source: store.NewSource(o.Store, "outbox"), Policy: p, Clock: o.clock.Now})
	o.must(err)
	return d
}

// handle runs a handler on the message that comes next, and settles it.
func (o *outbox) handle(desk *worker.Desk, key string, do func(d *nixie.Delivery) error) nixie.Settlement {
	o.Helper()
	ds, err := desk.Receive(o.Context(), nixie.Want{Max: 10})
	o.must(err)
	if len(ds) != 1 || ds[0].Key != key {
		o.Fatalf("received %d messages, the first %+v, want %s", len(ds), ds, key)
	}
	st, err := desk.Done(o.Context(), ds[0], do(ds[0]), o.clock.Now())
	o.must(err)
	return st
}

// letter is the one of a message.
func (o *outbox) letter(key string) *nixie.Letter {
	o.Helper()
	list, _, err := o.Letters(o.Context(), nixie.Filter{Keys: []string{key}}, store.Page{Whole: true})
	o.must(err)
	if len(list) != 1 {
		o.Fatalf("%d letters of %s", len(list), key)
	}
	return &list[0]
}

func (o *outbox) resolve(l *nixie.Letter, on store.Event) {
	o.Helper()
	o.must(o.Resolve(o.Context(), []store.Resolution{{Letter: l.ID, Event: on, Actor: "ann", Reason: "fixed", Force: true}})[0])
}

// TestStepsResumeWhereTheyStopped lets a message fail in the last of three steps and
// once more after its death: what was done is not done again, and the status says
// what that was.
func TestStepsResumeWhereTheyStopped(t *testing.T) {
	o := newOutbox(t)
	o.put("m1")
	runs := map[string]int{}
	failing := true
	publish := func(d *nixie.Delivery) error {
		for _, step := range []string{"Stored", "EventStored", "Published"} {
			err := d.Step(step, func() error {
				runs[step]++
				if step == "Published" && failing {
					return nixie.WithReason(errors.New("Transport unavailable"), nixie.ReasonTransportUnavailable)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	desk := o.desk(policy.Config{MaxAttempts: 2, Backoff: policy.Backoff{Base: time.Minute, Jitter: policy.JitterNone}})
	o.handle(desk, "m1", publish)
	o.row("m1", "status, attempts, failure_reason", "32771 1 1")
	o.clock.Advance(time.Minute)
	if st := o.handle(desk, "m1", publish); st.Verb != nixie.Bury {
		t.Fatalf("the last attempt led to %s", st.Verb)
	}
	o.row("m1", "status, attempts, error", "32771 2 Published: Transport unavailable")
	o.resolve(o.letter("m1"), store.OnRedrive)
	failing = false
	o.handle(desk, "m1", publish)
	o.row("m1", "status", published)
	if want := map[string]int{"Stored": 1, "EventStored": 1, "Published": 3}; !maps.Equal(runs, want) {
		t.Errorf("steps ran %v times, want %v", runs, want)
	}
}

// theirReasons reads the table of docs/policy.md: their number by each reason of ours.
func theirReasons(t *testing.T) map[nixie.Reason]int {
	t.Helper()
	text, err := os.ReadFile("../../docs/policy.md")
	must(t, err)
	numbers := map[nixie.Reason]int{}
	reasons := regexp.MustCompile("(?m)^\\| `[A-Z]\\w+` \\| (\\d+) \\| `([a-z-]+)` \\| (.*) \\|$")
	for _, row := range reasons.FindAllStringSubmatch(string(text), -1) {
		number, err := strconv.Atoi(row[1])
		must(t, err)
		for _, ours := range append([]string{row[2]}, regexp.MustCompile("[a-z]+[a-z-]*").FindAllString(row[3], -1)...) {
			numbers[nixie.Reason(ours)] = number
		}
	}
	return numbers
}

// TestReasonsUnderTheirNames lets a message die of each reason, and compares what
// the view says with the documented table; each reason is found by its filter, and
// only what has it is redriven by it.
func TestReasonsUnderTheirNames(t *testing.T) {
	o := newOutbox(t)
	want := theirReasons(t)
	if len(want) != len(nixie.Reasons()) {
		t.Errorf("the table of docs/policy.md is about %d reasons, there are %d", len(want), len(nixie.Reasons()))
	}
	for number, theirs := range map[int]nixie.Reason{1: "transport-unavailable", 2: "handler", 3: "validation", 4: "timeout",
		5: "serialization", 6: "dependency", 7: "poison", 99: "unknown"} {
		if want[theirs] != number {
			t.Errorf("%s is %d in the table, want %d", theirs, want[theirs], number)
		}
	}
	for _, r := range nixie.Reasons() {
		_, err := o.Enqueue(t.Context(), nixie.Message{Queue: "outbox", Key: string(r)})
		o.must(err)
		o.settle(nixie.Settlement{
			Delivery: o.claim(string(r)), Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen,
				Redrivable: true},
			Failure: &nixie.Failure{FailedAt: o.clock.Now(), Reason: r, Class: nixie.ClassPermanent, Text: "no"},
		})
		o.row(string(r), "failure_reason", fmt.Sprint(want[r]))
	}
	filter, err := filter.Parse("reason:transport-unavailable", o.clock.Now())
	o.must(err)
	letters, _, err := o.Letters(t.Context(), filter, store.Page{})
	o.must(err)
	if len(letters) != 1 || letters[0].Reason != nixie.ReasonTransportUnavailable {
		t.Fatalf("the filter finds %+v", letters)
	}
	o.resolve(&letters[0], store.OnRedrive)
	o.claim("transport-unavailable")
}

// TestPoisonBecomesALetter lets a message fail ten times, with the waits of its
// profile: then it is a letter, its stream goes on, and a redrive begins at nought.
func TestPoisonBecomesALetter(t *testing.T) {
	o := newOutbox(t)
	o.must(store.Configure(t.Context(), o, "outbox", nixie.QueueSettings{Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees}, "ann", ""))
	o.put("m1", "m2")
	desk := o.desk(policy.Config{Profile: "whizbang"})
	down := func(*nixie.Delivery) error { return nixie.WithReason(errors.New("too large"), nixie.ReasonDependency) }
	var waits []time.Duration
	for {
		st := o.handle(desk, "m1", down)
		if st.Verb != nixie.Retry {
			break
		}
		waits = append(waits, st.Delay)
		o.clock.Advance(st.Delay)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}; !slices.EqualFunc(waits, want,
		func(a, b time.Duration) bool { return a == b*time.Minute }) {
		t.Errorf("waits are %v", waits)
	}
	l := o.letter("m1")
	if l.Status != nixie.StatusOpen || l.Cause != nixie.CauseExhausted || len(l.History) != 10 || l.Message.Attempts != 10 {
		t.Errorf("letter is %+v", l)
	}
	o.row("m1", "status, attempts, scheduled_for", failed+" 10")
	fine := func(*nixie.Delivery) error { return nil }
	o.handle(desk, "m2", fine)
	o.resolve(l, store.OnRedrive)
	o.row("m1", "attempts", "0")
	o.handle(desk, "m1", fine)
	o.row("m1", "status", published)
}

// TestPoisonWaitsForAPerson lets a handler ask for a person: the message is not
// tried again by itself, its stream goes on when an operator lets it, and only what was
// decided about it brings it back.
func TestPoisonWaitsForAPerson(t *testing.T) {
	o := newOutbox(t)
	o.put("m1", "m2")
	desk := o.desk(policy.Config{Profile: "whizbang"})
	o.handle(desk, "m1", func(*nixie.Delivery) error {
		return nixie.Verdict(nixie.Hold, nixie.WithReason(errors.New("exceeds memory"), nixie.ReasonPoison))
	})
	l := o.letter("m1")
	if l.Status != nixie.StatusReview || !l.NeedsReview {
		t.Errorf("letter is %+v", l)
	}
	o.row("m1", "status, failure_reason, scheduled_for", failed+" 7")
	o.clock.Advance(24 * time.Hour)
	o.claim("")
	_, err := o.Unblock(t.Context(), store.Unblocking{Queue: "outbox", Stream: "customer-7", Actor: "ann", Reason: "independent of m1"})
	o.must(err)
	fine := func(*nixie.Delivery) error { return nil }
	o.handle(desk, "m2", fine)
	if err := o.Resolve(t.Context(), []store.Resolution{{Letter: l.ID, Event: store.OnRedrive, Actor: "ann",
		Reason: "all"}})[0]; nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("a redrive without force is answered %v", err)
	}
	o.resolve(l, store.OnUnhold)
	o.resolve(l, store.OnRedrive)
	o.handle(desk, "m1", fine)
	o.row("m1", "status", published)
}

// TestPoisonOpensABreaker lets one type of messages fail in a row: it is not run any
// more until it is tried again, no attempt is spent meanwhile, and all arrive in the
// end.
func TestPoisonOpensABreaker(t *testing.T) {
	const messages, failures = 40, 5
	list, _ := crowd(t, 1)
	s := list[0]
	for i := range messages {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Type: "mail", Key: fmt.Sprint(i)})
		must(t, err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var states []string
	repaired := make(chan struct{})
	arrived := 0
	policies, err := policy.New(policy.Config{MaxAttempts: 3, Backoff: policy.Backoff{Formula: policy.Fixed, Base: policy.MinSpacing,
		Jitter: policy.JitterNone}})
	must(t, err)
	w, err := worker.New(worker.Config{
		Source: store.NewSource(s, "q"), Concurrency: 1, Policy: policies,
		Breaker: policy.BreakerRules{Failures: failures, Successes: 1, OpenFor: 50 * time.Millisecond, HalfOpenMax: 1},
		Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
			select {
			case <-repaired:
				if arrived++; arrived == messages {
					stop()
				}
				return nil
			default:
				return nixie.WithReason(errors.New("mail server is down"), nixie.ReasonTransportUnavailable)
			}
		}),
		Observer: &nixie.Observer{Breaker: func(c nixie.BreakerChange) {
			if states = append(states, c.State); len(states) == 1 {
				close(repaired)
			}
		}},
	})
	must(t, err)
	must(t, w.Run(ctx))
	if got := strings.Join(states, " "); got != "open half-open closed" {
		t.Errorf("the breaker was %s", got)
	}
	records, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{Limit: messages, Whole: true})
	must(t, err)
	failed := 0
	for i := range records {
		failed += len(records[i].History)
		if r := &records[i]; r.State != nixie.Succeeded || r.Attempts != len(r.History)+1 {
			t.Errorf("message %s is %s after %d attempts and %d failures", r.Key, r.State, r.Attempts, len(r.History))
		}
	}
	if failed != failures || len(records) != messages {
		t.Errorf("%d messages failed %d times, want %d and %d", len(records), failed, messages, failures)
	}
	sound(t, s)
}
