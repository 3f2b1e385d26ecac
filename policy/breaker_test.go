package policy

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

func TestR10_Breaker(t *testing.T) {
	rules := countingBreaker()
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	var b Breaker
	now := noon
	next := func(on BreakerMoment, ticket int) BreakerDecision {
		var answer BreakerDecision
		b, answer = rules.Next(b, BreakerEvent{On: on, Ticket: ticket}, now)
		return answer
	}
	expect := func(what string, state BreakerState, got, want BreakerDecision) {
		t.Helper()
		if b.State != state || got != want {
			t.Fatalf("%s: %s, %+v; want %s, %+v", what, b.State, got, state, want)
		}
	}
	run := func(on BreakerMoment) BreakerDecision { return next(on, next(BreakerAsked, 0).Ticket) }

	for range 4 {
		expect("failure", BreakerClosed, run(BreakerFailed), BreakerDecision{})
	}
	expect("success between", BreakerClosed, run(BreakerSucceeded), BreakerDecision{})
	for range 4 {
		expect("four more failures", BreakerClosed, run(BreakerFailed), BreakerDecision{})
	}
	late := next(BreakerAsked, 0).Ticket
	expect("the fifth in a row", BreakerOpen, run(BreakerFailed), BreakerDecision{Changed: true})

	attempts := 0
	for range 29 {
		if next(BreakerAsked, 0).Allow {
			attempts++
		}
		now = now.Add(time.Second)
	}
	expect("open for 29 s", BreakerOpen, next(BreakerAsked, 0), BreakerDecision{Wait: time.Second})
	if attempts != 0 {
		t.Fatalf("%d attempts were spent while open", attempts)
	}
	expect("a failure from before", BreakerOpen, next(BreakerFailed, late), BreakerDecision{})

	now = now.Add(time.Second)
	trial := next(BreakerAsked, 0)
	expect("30 s later", BreakerHalfOpen, trial, BreakerDecision{Allow: true, Ticket: 2, Try: true, Changed: true})
	if b.Failures != 0 || b.Successes != 0 || b.Running != 1 {
		t.Fatalf("counters are not at zero: %+v", b)
	}
	next(BreakerAsked, 0)
	expect("the third", BreakerHalfOpen, next(BreakerAsked, 0), BreakerDecision{Allow: true, Ticket: 2, Try: true})
	expect("the fourth", BreakerHalfOpen, next(BreakerAsked, 0), BreakerDecision{Wait: 30 * time.Second})
	expect("a failure from before", BreakerHalfOpen, next(BreakerFailed, late), BreakerDecision{})
	next(BreakerSucceeded, trial.Ticket)
	next(BreakerSucceeded, trial.Ticket)
	expect("any failure", BreakerOpen, next(BreakerFailed, trial.Ticket), BreakerDecision{Changed: true})

	now = now.Add(30 * time.Second)
	for range 2 {
		run(BreakerSucceeded)
	}
	expect("returned without outcome", BreakerHalfOpen, run(BreakerReturned), BreakerDecision{})
	expect("two successes, none of the time before", BreakerHalfOpen, BreakerDecision{}, BreakerDecision{})
	expect("the third success", BreakerClosed, run(BreakerSucceeded), BreakerDecision{Changed: true})
	for range 4 {
		expect("counts from zero", BreakerClosed, run(BreakerFailed), BreakerDecision{})
	}
	expect("opens again", BreakerOpen, run(BreakerFailed), BreakerDecision{Changed: true})

	now = now.Add(time.Hour)
	for range 3 {
		next(BreakerAsked, 0)
	}
	now = now.Add(30 * time.Second)
	if !next(BreakerAsked, 0).Allow {
		t.Fatal("three runs that vanished block the trial for ever")
	}
}

func TestR10_NoBreakerAllowsEverything(t *testing.T) {
	for _, off := range []BreakerRules{{}, {Failures: none}} {
		if _, answer := off.Next(Breaker{}, BreakerEvent{On: BreakerAsked}, noon); !answer.Allow || off.Check() != nil || off.On() {
			t.Errorf("%+v refuses, or is refused", off)
		}
	}
	bad := func(change func(*BreakerRules)) BreakerRules { r := DefaultBreaker(); change(&r); return r }
	for _, bad := range []BreakerRules{
		{Failures: 5}, {Failures: 5, Successes: 3, HalfOpenMax: 3}, {Successes: -1}, {Failures: 1, Successes: 1, OpenFor: time.Hour},
		{Failures: none, Successes: 1}, {Failures: none, Healing: true},
		bad(func(r *BreakerRules) { r.Failures = 0 }), bad(func(r *BreakerRules) { r.Failures = 1001 }),
		bad(func(r *BreakerRules) { r.MaxOpenFor = time.Second }), bad(func(r *BreakerRules) { r.MaxOpenFor = nixie.MaxDelay + 1 }),
	} {
		if nixie.CodeOf(bad.Check()) != nixie.CodeInvalid {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// These properties hold for every history of a breaker.
func TestR10_BreakerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := BreakerRules{
			Failures: rapid.IntRange(1, 4).Draw(t, "failures"), Successes: rapid.IntRange(1, 4).Draw(t, "successes"),
			OpenFor: 10 * time.Second, HalfOpenMax: rapid.IntRange(1, 4).Draw(t, "half-open max"), Healing: rapid.Bool().Draw(t, "healing"),
			MaxOpenFor: time.Duration(rapid.SampledFrom([]int{0, 10, 25, 90}).Draw(t, "longest")) * time.Second,
		}
		if err := rules.Check(); err != nil {
			t.Fatal(err)
		}
		var b Breaker
		var tickets []int
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "seconds")) * time.Second)
			on := rapid.SampledFrom([]BreakerMoment{BreakerAsked, BreakerSucceeded, BreakerFailed, BreakerReturned}).Draw(t, "event")
			e := BreakerEvent{On: on, Message: nixie.ID{byte(rapid.IntRange(1, 5).Draw(t, "message"))}}
			if on != BreakerAsked {
				if len(tickets) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(tickets)-1).Draw(t, "which")
				e.Ticket = tickets[i]
				tickets = slices.Delete(tickets, i, i+1)
			}
			before := b
			var answer BreakerDecision
			b, answer = rules.Next(before, e, now)
			if answer.Allow {
				tickets = append(tickets, answer.Ticket)
			}
			switch {
			case before.State == BreakerOpen && now.Before(before.Until) && (answer.Allow || !reflect.DeepEqual(b, before)):
				t.Fatalf("open until %s, at %s: %+v", before.Until, now, answer)
			case answer.Changed != (b.State != before.State) || answer.Changed && b.Entered != before.Entered+1:
				t.Fatalf("%+v became %+v with %+v", before, b, answer)
			case b.Failures >= rules.Failures || b.Successes >= rules.Successes || b.Running > rules.HalfOpenMax || b.Running < 0:
				t.Fatalf("over a limit: %+v", b)
			case before.State == BreakerHalfOpen && on == BreakerFailed && e.Ticket == before.Entered && b.State != BreakerOpen:
				t.Fatal("a failure in half-open did not open it")
			case e.On == BreakerAsked && !answer.Allow && answer.Wait <= 0:
				t.Fatal("refused without saying when to ask again")
			case rules.Healing && b.State == BreakerClosed && len(b.Messages) != b.Failures:
				t.Fatalf("counts a message twice: %+v", b)
			case answer.Changed && b.State == BreakerOpen && b.Until.Sub(now) != openFor(&rules, b.Opened):
				t.Fatalf("open for %s the %dth time in a row: %+v", b.Until.Sub(now), b.Opened, rules)
			case b.Since.IsZero() != (b.State == BreakerClosed),
				before.State != BreakerClosed && b.State != BreakerClosed && b.Since != before.Since:
				t.Fatalf("since %s in state %s", b.Since, b.State)
			case answer.Try != (answer.Allow && b.State == BreakerHalfOpen):
				t.Fatalf("a try is %v in state %s", answer.Try, b.State)
			}
		}
	})
}

// openFor returns the time for which a breaker is open the nth time in a row: doubled each time, up
// to the longest.
func openFor(r *BreakerRules, n int) time.Duration {
	wait := r.OpenFor
	for ; n > 1; n-- {
		wait *= 2
	}
	return max(min(wait, r.MaxOpenFor), r.OpenFor)
}

// The default breaker opens after ten messages, is tried alone, ever less often, and closes after
// three successes. A success lets the next try begin at once, and its waits begin anew.
func TestDefaultBreaker(t *testing.T) {
	rules := DefaultBreaker()
	var b Breaker
	now := noon
	run := func(on BreakerMoment, message byte) (answer BreakerDecision) {
		b, answer = rules.Next(b, BreakerEvent{On: BreakerAsked}, now)
		if !answer.Allow {
			t.Fatalf("refused in %+v", b)
		}
		b, answer = rules.Next(b, BreakerEvent{On: on, Ticket: answer.Ticket, Message: nixie.ID{message}}, now)
		return answer
	}
	for m := range byte(9) {
		for range 3 { // a message counts once
			run(BreakerFailed, m)
		}
	}
	if b.State != BreakerClosed || !run(BreakerFailed, 9).Changed {
		t.Fatalf("the tenth message does not open it: %+v", b)
	}
	for n, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		if got := b.Until.Sub(now); got != want*time.Second {
			t.Errorf("wait %d is %s, want %ds", n, got, want)
		}
		now = b.Until
		run(BreakerFailed, 1)
	}
	now = b.Until
	run(BreakerSucceeded, 1)
	run(BreakerFailed, 1)
	if got := b.Until.Sub(now); got != 2*time.Second || b.Since != noon {
		t.Errorf("after a success it waits %s, since %s", got, b.Since)
	}
	now = b.Until
	for range 2 {
		run(BreakerSucceeded, 1)
	}
	if b.State != BreakerHalfOpen || !run(BreakerSucceeded, 1).Changed || b.State != BreakerClosed {
		t.Errorf("three successes do not close it: %+v", b)
	}
	if got := rules.Of(1, true); got.Failures != 5 || got.MaxOpenFor != 15*time.Second {
		t.Errorf("with one hand, awaited: %+v", got)
	}
	if got := countingBreaker().Of(1, true); got != countingBreaker() {
		t.Errorf("rules that were given became %+v", got)
	}
}

func TestParseBreaker(t *testing.T) {
	s := time.Second
	of := func(failures, successes int, open time.Duration, most int) BreakerRules {
		return BreakerRules{Failures: failures, Successes: successes, OpenFor: open, HalfOpenMax: most}
	}
	for text, want := range map[string]BreakerRules{
		"none": {Failures: none}, "default": DefaultBreaker(), "7": of(7, 3, 30*s, 3), "7,1": of(7, 1, 30*s, 3),
		"7, 1, 2m": of(7, 1, 120*s, 3), "7,1,2m,9": of(7, 1, 120*s, 9),
	} {
		if got, err := ParseBreaker(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "x", "5,", "5,3,30", "5,3,1ns", "5,3,30s,0", "5,3,30s,3,1", "1e3", "5,3,-1s"} {
		if got, err := ParseBreaker(bad); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

func FuzzParseBreaker(f *testing.F) {
	f.Add("5,3,30s,3")
	f.Add("none")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := ParseBreaker(text); err == nil && r.Check() != nil {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

func TestR10_Room(t *testing.T) {
	r := countingBreaker()
	for _, c := range []struct {
		b    Breaker
		runs int
		wait time.Duration
	}{
		{Breaker{}, -1, 0}, {Breaker{State: BreakerOpen, Until: noon.Add(time.Second)}, 0, time.Second},
		{Breaker{State: BreakerOpen, Until: noon}, 3, 0},
		{Breaker{State: BreakerHalfOpen, Running: 3, Until: noon.Add(time.Second)}, 3, 0},
	} {
		if runs, wait := r.Room(c.b, noon); runs != c.runs || wait != c.wait {
			t.Errorf("%+v: %d runs, wait %s", c.b, runs, wait)
		}
	}
}
