package policy

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

// delivery makes a delivery at its second attempt.
func delivery() *nixie.Delivery {
	return &nixie.Delivery{Message: nixie.Message{
		ID: nixie.ID{7}, Queue: "q", Attempts: 2, Deliveries: 3, Generation: 1, EnqueuedAt: noon.Add(-time.Minute),
	}}
}

// Each row lets one rule of Decide apply. The test combines them to pairs.
type situation struct {
	rule  string
	apply func(*nixie.Delivery, *nixie.Failure)
	verb  nixie.Verb
	cause nixie.Cause
}

func situations() []situation {
	return []situation{
		{"asked", func(_ *nixie.Delivery, f *nixie.Failure) { f.Err = nixie.Verdict(nixie.Discard, f.Err) }, nixie.Discard, ""},
		{"expired", func(d *nixie.Delivery, _ *nixie.Failure) { d.ExpiresAt = noon }, nixie.Bury, nixie.CauseExpired},
		{"max-age", func(d *nixie.Delivery, _ *nixie.Failure) { d.EnqueuedAt = noon.Add(-time.Hour) }, nixie.Bury, nixie.CauseMaxAge},
		{"max-deliveries", func(d *nixie.Delivery, _ *nixie.Failure) { d.Deliveries = 31 }, nixie.Bury, nixie.CauseExhausted},
		{"max-crashes", func(d *nixie.Delivery, f *nixie.Failure) {
			d.Abandoned, d.AbandonedAlone, d.Crashes, f.Reason = true, true, 3, nixie.ReasonLeaseExpired
		}, nixie.Bury, nixie.CausePoison},
		{"released", func(_ *nixie.Delivery, f *nixie.Failure) { f.Err = nixie.Verdict(nixie.Release, f.Err) }, nixie.Release, ""},
		{"extend-on", func(_ *nixie.Delivery, f *nixie.Failure) { f.Err = errors.Join(f.Err, os.ErrDeadlineExceeded) }, nixie.Release, ""},
		{"try", func(d *nixie.Delivery, _ *nixie.Failure) { d.Attempts, d.Tracking.Trial = 1, nixie.TrialAny }, nixie.Retry, ""},
		{"never-dead", func(_ *nixie.Delivery, f *nixie.Failure) { f.Err = errors.Join(f.Err, os.ErrClosed) }, nixie.Retry, ""},
		{"permanent", func(_ *nixie.Delivery, f *nixie.Failure) { f.Err = errors.Join(f.Err, os.ErrInvalid) }, nixie.Bury,
			nixie.CausePermanent},
		{"permanent", func(_ *nixie.Delivery, f *nixie.Failure) { f.Class = nixie.ClassPermanent }, nixie.Bury, nixie.CausePermanent},
		{"crashed", func(d *nixie.Delivery, _ *nixie.Failure) { d.Abandoned, d.Crashes = true, 1 }, nixie.Retry, ""},
		{"min-age", func(d *nixie.Delivery, f *nixie.Failure) {
			d.Attempts, d.Type, f.Reason = 5, "patient", nixie.ReasonTimeout
		}, nixie.Retry, ""},
		{"max-attempts", func(d *nixie.Delivery, _ *nixie.Failure) { d.Attempts = 5 }, nixie.Bury, nixie.CauseExhausted},
		{"retry-budget", func(d *nixie.Delivery, _ *nixie.Failure) { d.Attempts = 4 }, nixie.Bury, nixie.CauseExhausted},
		{"retry", func(*nixie.Delivery, *nixie.Failure) {}, nixie.Retry, ""},
	}
}

func strict(t testing.TB) *Policy {
	return mustNew(t, Config{
		MaxAge:      time.Hour,
		NeverDead:   []Matcher{MatchError(os.ErrClosed)},
		DeadAtOnce:  []Matcher{MatchError(os.ErrInvalid)},
		ExtendOn:    []Matcher{MatchError(os.ErrDeadlineExceeded)},
		RetryBudget: 5 * time.Second,
		Cases:       []Case{{Type: "patient", Config: Config{MinAge: time.Minute, RetryBudget: none}}},
	})
}

func TestTheEarlierRuleBeatsTheLaterOne(t *testing.T) {
	p := strict(t)
	all := situations()
	for i, first := range all {
		for _, second := range all[i:] {
			t.Run(first.rule+" over "+second.rule, func(t *testing.T) {
				d := delivery()
				f := &nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Err: errors.New("x")}
				second.apply(d, f)
				first.apply(d, f)
				s := p.Decide(d, f, noon)
				cause := nixie.Cause("")
				if s.Burial != nil {
					cause = s.Burial.Cause
				}
				if s.Verb != first.verb || cause != first.cause {
					t.Errorf("got %s %s, want %s %s", s.Verb, cause, first.verb, first.cause)
				}
			})
		}
	}
}

func TestB080_TheDocumentedOrderIsTheOrder(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(source)) {
		rule, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		name, meaning, _ := strings.Cut(strings.TrimSpace(rule), " ")
		documented = append(documented, name+": "+strings.TrimSpace(meaning))
	}
	var coded []string
	for _, s := range DecisionRules() {
		coded = append(coded, s.Name+": "+s.Meaning)
	}
	if !slices.Equal(documented, coded) {
		t.Errorf("doc.go says\n%s\nthe code says\n%s", strings.Join(documented, "\n"), strings.Join(coded, "\n"))
	}
	var tested []string
	for _, s := range situations() {
		tested = append(tested, s.rule)
	}
	tested = append([]string{"success"}, slices.Compact(tested)...)
	for i, s := range DecisionRules() {
		if i >= len(tested) || tested[i] != s.Name {
			t.Fatalf("the situations %v do not follow the order", tested)
		}
	}
}

func TestSuccess(t *testing.T) {
	d := delivery()
	d.Attempts, d.Deliveries, d.ExpiresAt = 99, 99, noon
	want := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	if got := strict(t).Decide(d, nil, noon); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestAskedVerbs(t *testing.T) {
	cause := errors.New("why")
	for _, c := range []struct {
		verb   nixie.Verb
		mutate func(*nixie.Delivery)
		want   nixie.Verb
		status nixie.Status
		review bool
	}{
		{nixie.Bury, nil, nixie.Bury, nixie.StatusOpen, false},
		{nixie.Hold, nil, nixie.Hold, nixie.StatusReview, true},
		{nixie.Halt, nil, nixie.Halt, nixie.StatusOpen, false},
		{nixie.Hold, func(d *nixie.Delivery) { d.Redrives = 3 }, nixie.Hold, nixie.StatusQuarantined, true},
		{nixie.Discard, nil, nixie.Discard, "", false},
		{nixie.Release, nil, nixie.Release, "", false},
		{nixie.Release, func(d *nixie.Delivery) { d.Deliveries = 25 }, nixie.Bury, nixie.StatusOpen, false},
		{nixie.Retry, nil, nixie.Retry, "", false},
		{nixie.Retry, func(d *nixie.Delivery) { d.Attempts = 5 }, nixie.Bury, nixie.StatusOpen, false},
		{nixie.Retry, func(d *nixie.Delivery) { d.ExpiresAt = noon }, nixie.Bury, nixie.StatusOpen, false},
		{nixie.Complete, nil, nixie.Retry, "", false},        // cannot be asked for
		{nixie.Verb("explode"), nil, nixie.Retry, "", false}, // unheard of
	} {
		p := mustNew(t, Config{})
		d := delivery()
		if c.mutate != nil {
			c.mutate(d)
		}
		f := p.Diagnose(d, nixie.Verdict(c.verb, cause), Attempt{})
		s := p.Decide(d, f, noon)
		if s.Verb != c.want {
			t.Errorf("%s: got %s, want %s", c.verb, s.Verb, c.want)
			continue
		}
		if (s.Burial != nil) != (c.status != "") || s.Burial != nil && (s.Burial.Status != c.status || s.Burial.NeedsReview != c.review) {
			t.Errorf("%s: burial %+v, want status %q, review %t", c.verb, s.Burial, c.status, c.review)
		}
		if c.want == nixie.Discard && s.Note != "why" {
			t.Errorf("discard has note %q", s.Note)
		}
	}
}

func TestAskedRetryPassesOverPermanent(t *testing.T) {
	p := mustNew(t, Config{})
	f := p.Diagnose(delivery(), nixie.Verdict(nixie.Retry, nixie.Permanent(errors.New("x"))), Attempt{})
	if f.Class != nixie.ClassPermanent {
		t.Fatalf("class is %s", f.Class)
	}
	if s := p.Decide(delivery(), f, noon); s.Verb != nixie.Retry {
		t.Errorf("got %s", s.Verb)
	}
}

func TestOnExhausted(t *testing.T) {
	for _, verb := range []nixie.Verb{nixie.Bury, nixie.Hold, nixie.Discard, nixie.Halt} {
		p := mustNew(t, Config{OnExhausted: verb})
		d := delivery()
		d.Attempts = 5
		s := p.Decide(d, p.Diagnose(d, errors.New("x"), Attempt{}), noon)
		if s.Verb != verb || s.Failure.Decision != verb || (s.Burial == nil) != (verb == nixie.Discard) {
			t.Errorf("%s: got %+v", verb, s)
		}
	}
}

func TestRetryAfterIsALowerBound(t *testing.T) {
	p := mustNew(t, Config{})
	for after, atLeast := range map[time.Duration]time.Duration{
		time.Hour:            time.Hour,
		2 * nixie.MaxDelay:   nixie.MaxDelay,
		-time.Hour:           MinSpacing,
		time.Nanosecond:      MinSpacing,
		16 * time.Minute:     16 * time.Minute,
		nixie.MaxDelay:       nixie.MaxDelay,
		5 * time.Millisecond: MinSpacing,
	} {
		d := delivery()
		s := p.Decide(d, p.Diagnose(d, nixie.RetryAfter(errors.New("busy"), after), Attempt{}), noon)
		if s.Verb != nixie.Retry || s.Delay < atLeast || s.Delay > nixie.MaxDelay {
			t.Errorf("after %s: %s in %s", after, s.Verb, s.Delay)
		}
		if !s.Failure.NextAt.Equal(noon.Add(s.Delay)) {
			t.Errorf("after %s: next at %s, delay %s", after, s.Failure.NextAt, s.Delay)
		}
	}
}

func TestR4_AnExcludedErrorEndsByAge(t *testing.T) {
	p := strict(t)
	d := delivery()
	err := errors.Join(errors.New("both listed"), os.ErrInvalid, os.ErrClosed)
	d.Attempts, d.Deliveries = 20, 20
	if s := p.Decide(d, p.Diagnose(d, err, Attempt{}), noon); s.Verb != nixie.Retry {
		t.Fatalf("excluded and included: %s", s.Verb)
	}
	d.EnqueuedAt = noon.Add(-time.Hour)
	s := p.Decide(d, p.Diagnose(d, err, Attempt{}), noon)
	if s.Verb != nixie.Bury || s.Burial.Cause != nixie.CauseMaxAge {
		t.Fatalf("excluded and too old: %+v", s)
	}
	d = delivery()
	d.Attempts = 1
	s = p.Decide(d, p.Diagnose(d, nixie.WithReason(errors.Join(os.ErrInvalid), nixie.ReasonHandler), Attempt{}), noon)
	if s.Verb != nixie.Bury || s.Burial.Cause != nixie.CausePermanent {
		t.Fatalf("included and wrapped, first delivery: %+v", s)
	}
}

// A holder vanishes at each run. The third time in a row the message is poison, if the holder held
// it alone. With any max_attempts this uses no attempt.
func TestR13_VanishingHoldersEndAsPoison(t *testing.T) {
	const most = DefaultMaxCrashes
	for _, config := range []Config{{}, {MaxAttempts: 1}, {MaxAttempts: none, MaxAge: 1000 * time.Hour}} {
		p := mustNew(t, config)
		d := delivery()
		d.Abandoned, d.AbandonedBy, d.AbandonedAlone = true, "worker-1", true
		for crash := 1; crash <= most; crash++ {
			d.Attempts, d.Crashes, d.Deliveries = 0, crash, 2*crash
			f := p.Abandoned(d, noon)
			if f.Reason != nixie.ReasonLeaseExpired || f.Worker != "worker-1" || f.Attempt != 1 {
				t.Fatalf("failure %+v", f)
			}
			s := p.Decide(d, f, noon)
			if crash < most {
				if s.Verb != nixie.Retry || s.Delay != 0 || s.Failure.Reason != nixie.ReasonLeaseExpired {
					t.Fatalf("crash %d: %s %s", crash, s.Verb, s.Failure.Reason)
				}
				continue
			}
			b := s.Burial
			if s.Verb != nixie.Bury || b.Cause != nixie.CausePoison || s.Failure.Reason != nixie.ReasonPoison ||
				b.Redrivable || !b.NeedsReview || b.Rule != "cause:poison" || b.Status != nixie.StatusOpen {
				t.Fatalf("crash %d: %+v %+v", crash, s, b)
			}
			if f.Reason != nixie.ReasonLeaseExpired || f.Decision != "" {
				t.Error("Decide changed the failure it was given")
			}
		}
	}
}

// Releases refund attempts and not deliveries.
func TestR14_ALoopOfReleasesEnds(t *testing.T) {
	p := mustNew(t, Config{})
	d := delivery()
	d.Attempts = 1
	for d.Deliveries = 1; ; d.Deliveries++ {
		if f := p.Admit(d, noon); f != nil {
			t.Fatalf("delivery %d is not admitted: %s", d.Deliveries, f.Text)
		}
		s := p.Decide(d, p.Diagnose(d, nixie.Verdict(nixie.Release, nil), Attempt{}), noon)
		if s.Verb != nixie.Release {
			if d.Deliveries != 25 || s.Verb != nixie.Bury || s.Burial.Cause != nixie.CauseExhausted {
				t.Fatalf("delivery %d: %+v", d.Deliveries, s)
			}
			break
		}
		if s.Failure != nil || s.Delay < MinSpacing {
			t.Fatalf("release with failure %v and delay %s", s.Failure, s.Delay)
		}
	}
	// Admit ends the releases that a draining worker makes by itself.
	d.Deliveries = 26
	s := p.Decide(d, p.Admit(d, noon), noon)
	if s.Verb != nixie.Bury || s.Burial.Cause != nixie.CauseExhausted {
		t.Fatalf("%+v", s)
	}
}

func TestWhatIsNotAdmittedDies(t *testing.T) {
	p := mustNew(t, Config{MaxAge: time.Hour})
	for name, c := range map[string]struct {
		change func(*nixie.Delivery)
		cause  nixie.Cause
	}{
		"ordinary":      {func(*nixie.Delivery) {}, ""},
		"last attempt":  {func(d *nixie.Delivery) { d.Attempts = 5 }, ""},
		"last delivery": {func(d *nixie.Delivery) { d.Deliveries = 25 }, ""},
		"before expiry": {func(d *nixie.Delivery) { d.ExpiresAt = noon.Add(1) }, ""},
		"old but new":   {func(d *nixie.Delivery) { d.Attempts, d.EnqueuedAt = 1, noon.Add(-time.Hour) }, ""},
		"old":           {func(d *nixie.Delivery) { d.EnqueuedAt = noon.Add(-time.Hour) }, nixie.CauseMaxAge},
		"redriven":      {func(d *nixie.Delivery) { d.EnqueuedAt, d.RedrivenAt = noon.Add(-time.Hour), noon.Add(-time.Minute) }, ""},
		"redriven long ago": {func(d *nixie.Delivery) {
			d.EnqueuedAt, d.RedrivenAt = noon.Add(-2*time.Hour), noon.Add(-time.Hour)
		}, nixie.CauseMaxAge},
		"expired":        {func(d *nixie.Delivery) { d.ExpiresAt = noon }, nixie.CauseExpired},
		"one delivery":   {func(d *nixie.Delivery) { d.Deliveries = 26 }, nixie.CauseExhausted},
		"late attempt":   {func(d *nixie.Delivery) { d.Attempts = 13 }, ""},
		"one attempt":    {func(d *nixie.Delivery) { d.Attempts = 14 }, nixie.CauseExhausted},
		"damaged":        {func(d *nixie.Delivery) { d.Damage = []string{"headers: cut"} }, nixie.CausePermanent},
		"unknown moment": {func(d *nixie.Delivery) { d.EnqueuedAt = time.Time{} }, ""},
	} {
		d := delivery()
		c.change(d)
		f := p.Admit(d, noon)
		if (f == nil) != (c.cause == "") {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		if f != nil {
			if s := p.Decide(d, f, noon); s.Verb != nixie.Bury || s.Burial.Cause != c.cause {
				t.Errorf("%s: %+v", name, s)
			}
			history := []nixie.Failure{{Text: "before"}, *f}
			named := NamedAfter(history).Text
			if (named == "before") != (c.cause != nixie.CausePermanent) || NamedAfter(history[1:]).Text != f.Text {
				t.Errorf("%s: the letter is called after %q", name, named)
			}
		}
	}
}

// With more attempts than max_attempts, which was larger before, the message dies of its last
// failure. That was not permanent, as the message was retried.
func TestLeftOverAttemptsKeepTheLastReason(t *testing.T) {
	p := mustNew(t, Config{MaxAttempts: 8})
	for _, c := range []struct {
		last, want         nixie.Reason
		class              nixie.Class
		cause              nixie.Cause
		redrivable, review bool
	}{
		{nixie.ReasonTimeout, nixie.ReasonTimeout, nixie.ClassTransient, nixie.CauseExhausted, true, false},
		{nixie.ReasonValidation, nixie.ReasonValidation, nixie.ClassUnknown, nixie.CauseExhausted, false, true},
		{"", nixie.ReasonUnknown, nixie.ClassUnknown, nixie.CauseExhausted, true, false},
	} {
		d := delivery()
		d.Attempts, d.LastReason = 9, c.last
		s := p.Decide(d, p.Admit(d, noon), noon)
		if s.Verb != nixie.Bury || s.Failure.Reason != c.want || s.Failure.Class != c.class || s.Burial.Cause != c.cause ||
			s.Burial.Redrivable != c.redrivable || s.Burial.NeedsReview != c.review ||
			!strings.HasPrefix(s.Burial.Signature, string(s.Failure.Reason)+": ") && c.cause == nixie.CauseExhausted {
			t.Errorf("after %q: %+v %+v %+v", c.last, s, s.Failure, s.Burial)
		}
	}
}

// A failure of never_dead is retried until a hard cap. Beyond max_attempts any other failure ends
// the message at once.
func TestNeverDeadIsRunBeyondMaxAttempts(t *testing.T) {
	p := mustNew(t, Config{NeverDead: []Matcher{MatchReason(nixie.ReasonThrottled)}})
	d := delivery()
	run := func(r nixie.Reason) nixie.Settlement {
		d.Attempts, d.Deliveries = d.Attempts+1, d.Deliveries+1
		if f := p.Admit(d, noon); f != nil {
			t.Fatalf("attempt %d is not admitted: %s", d.Attempts, f.Text)
		}
		d.LastReason = r
		return p.Decide(d, p.Diagnose(d, nixie.WithReason(errors.New("x"), r), Attempt{}), noon)
	}
	d.Attempts, d.Deliveries = 0, 0
	for d.Deliveries < 24 {
		if s := run(nixie.ReasonThrottled); s.Verb != nixie.Retry {
			t.Fatalf("attempt %d: %+v", d.Attempts, s)
		}
	}
	if s := run(nixie.ReasonThrottled); s.Verb != nixie.Bury || s.Burial.Cause != nixie.CauseExhausted {
		t.Errorf("max_deliveries is no cap: %+v", s)
	}
	d.Attempts, d.Deliveries = 9, 9
	if s := run(nixie.ReasonHandler); s.Verb != nixie.Bury {
		t.Errorf("another error beyond max_attempts: %+v", s)
	}
}

func TestQuarantineAfterTooManyRedrives(t *testing.T) {
	for _, c := range []struct {
		limit, redrives int
		want            nixie.Status
	}{{0, 2, nixie.StatusOpen}, {0, 3, nixie.StatusQuarantined}, {1, 1, nixie.StatusQuarantined}, {none, 1000, nixie.StatusOpen}} {
		p := mustNew(t, Config{MaxRedrives: c.limit})
		d := delivery()
		d.Redrives = c.redrives
		s := p.Decide(d, p.Diagnose(d, nixie.Permanent(errors.New("x")), Attempt{}), noon)
		if s.Burial.Status != c.want {
			t.Errorf("limit %d, redrives %d: %s, want %s", c.limit, c.redrives, s.Burial.Status, c.want)
		}
	}
}

// These properties hold for every delivery and every failure.
func TestDecideProperties(t *testing.T) {
	p := strict(t)
	verbs := []nixie.Verb{"", "", "", nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt}
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 40)
		d := &nixie.Delivery{Message: nixie.Message{
			ID: nixie.ID{rapid.Byte().Draw(t, "id")}, Attempts: count.Draw(t, "attempts"), Deliveries: count.Draw(t, "deliveries"),
			Crashes: count.Draw(t, "crashes"), Redrives: count.Draw(t, "redrives"), Generation: 1,
			EnqueuedAt: noon.Add(-time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "age"))),
		}}
		since := d.EnqueuedAt
		if rapid.Bool().Draw(t, "redriven") {
			since = noon.Add(-time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "since")))
			d.RedrivenAt = since
		}
		err := nixie.WithReason(errors.New("x"), rapid.SampledFrom(nixie.Reasons()).Draw(t, "reason"))
		if rapid.Bool().Draw(t, "excluded") {
			err = errors.Join(err, os.ErrClosed)
		}
		asked := rapid.SampledFrom(verbs).Draw(t, "asked")
		if asked != "" {
			err = nixie.Verdict(asked, err)
		}
		f := p.Diagnose(d, err, Attempt{StartedAt: noon, FailedAt: noon})
		before := *f
		s := p.Decide(d, f, noon)

		if !reflect.DeepEqual(*f, before) || !reflect.DeepEqual(s, p.Decide(d, f, noon)) {
			t.Fatal("Decide is not pure")
		}
		capped := d.Deliveries-2*d.Crashes >= 25 || noon.Sub(since) >= time.Hour
		goesOn := s.Verb == nixie.Retry || s.Verb == nixie.Release
		switch {
		case s.Verb == nixie.Complete:
			t.Fatal("a failure completes")
		case capped && goesOn:
			t.Fatalf("%s past a hard cap", s.Verb)
		case s.Verb == nixie.Retry && d.Attempts >= 5 && !errors.Is(err, os.ErrClosed):
			t.Fatal("retry past max_attempts")
		case s.Verb == nixie.Release && asked != nixie.Release:
			t.Fatal("release that the handler did not ask for")
		case (s.Failure == nil) != (s.Verb == nixie.Release):
			t.Fatalf("%s with failure %v", s.Verb, s.Failure)
		case s.Failure != nil && s.Failure.Decision != s.Verb:
			t.Fatalf("%s with decision %s", s.Verb, s.Failure.Decision)
		case goesOn && (s.Delay < MinSpacing || s.Delay > nixie.MaxDelay):
			t.Fatalf("%s in %s", s.Verb, s.Delay)
		case !goesOn && s.Delay != 0:
			t.Fatalf("%s with a delay", s.Verb)
		case (s.Burial != nil) != (s.Verb == nixie.Bury || s.Verb == nixie.Hold || s.Verb == nixie.Halt):
			t.Fatalf("%s with burial %v", s.Verb, s.Burial)
		case s.Burial != nil && (s.Burial.Rule == "" || s.Burial.Cause == "" || s.Burial.Fingerprint == "" || s.Burial.Signature == ""):
			t.Fatalf("burial with a hole: %+v", s.Burial)
		case s.Burial != nil && (s.Burial.Status == nixie.StatusQuarantined) != (d.Redrives >= 3):
			t.Fatalf("%d redrives and status %s", d.Redrives, s.Burial.Status)
		}
	})
}

// A holder that vanished with several messages makes none of them poison, until there were enough
// crashes for every suspect to have run alone.
func TestOnlyAHolderThatWasAloneConvicts(t *testing.T) {
	p := mustNew(t, Config{MaxAttempts: 1})
	d := delivery()
	d.Abandoned, d.AbandonedBy, d.Attempts = true, "worker-1", 0
	for crash := 1; crash < DefaultMaxCrashes+sharedCrashes; crash++ {
		d.Crashes, d.Deliveries = crash, 2*crash
		if s := p.Decide(d, p.Abandoned(d, noon), noon); s.Verb != nixie.Retry || s.Delay != 0 {
			t.Fatalf("crash %d: %s in %s", crash, s.Verb, s.Delay)
		}
	}
	d.Crashes++
	if s := p.Decide(d, p.Abandoned(d, noon), noon); s.Verb != nixie.Bury || s.Burial.Cause != nixie.CausePoison {
		t.Fatalf("crash %d: %s", d.Crashes, s.Verb)
	}
}

// The claims of crashes do not count for max_deliveries: an innocent message that ten killed
// runners held runs on.
func TestCrashesSpendNoDeliveries(t *testing.T) {
	p := mustNew(t, Config{MaxAttempts: 2})
	d := delivery()
	d.Attempts, d.Crashes, d.Deliveries = 1, 10, 21
	if f := p.Admit(d, noon); f != nil {
		t.Errorf("not admitted: %s", f.Text)
	}
	if s := p.Decide(d, p.Diagnose(d, errors.New("x"), Attempt{}), noon); s.Verb != nixie.Retry {
		t.Errorf("its first failure: %s", s.Verb)
	}
}
