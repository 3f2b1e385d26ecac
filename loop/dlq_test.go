package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// Errors of providers, as the tests' handlers return them.
var (
	errRate    = errors.New("rate limit")
	errContent = errors.New("content policy")
	errOther   = errors.New("no idea")
)

type validationError struct{ field string }

func (e *validationError) Error() string   { return "bad " + e.field }
func (*validationError) ErrorName() string { return "ValidationError" }

// Attempts 1 to 4 are followed by waits of 60, 120, 180 and 240 seconds; the fifth is the last.
func TestDLQBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		dlq := must(loop.NewDLQ(loop.DLQPolicy{}))(t)
		must(st.Enqueue(ctx, nixie.Message{Queue: "orders", Body: []byte(`{}`)}))(t)
		begun := time.Now()
		var at []time.Duration
		run, stop := context.WithCancel(ctx)
		w := must(worker.New(worker.Config{
			Source: store.NewSource(st, "orders"), Policy: dlq.Policy(), Decider: dlq, Logger: slog.New(slog.DiscardHandler),
			Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
				if at = append(at, time.Since(begun).Round(time.Second)); len(at) == loop.DefaultMaxDeliveryCount {
					stop()
				}
				return &validationError{"amount"}
			}),
		}))(t)
		if err := w.Run(run); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(at); got != "[0s 1m0s 3m0s 6m0s 10m0s]" {
			t.Errorf("attempts at %s", got)
		}
		letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
		if err != nil || len(letters) != 1 || letters[0].Cause != nixie.CauseExhausted || letters[0].Reason != nixie.ReasonValidation {
			t.Errorf("letters: %+v, %v", letters, err)
		}
	})
}

// sometimes makes a function of a policy that chooses a verb for all errors but errOther.
func sometimes(verb nixie.Verb) func(*nixie.Delivery, *nixie.Failure, func() nixie.Verb) nixie.Verb {
	return func(_ *nixie.Delivery, f *nixie.Failure, _ func() nixie.Verb) nixie.Verb {
		if errors.Is(f.Err, errOther) {
			return ""
		}
		return verb
	}
}

// likeRules is a function of a policy that decides as the other rules do.
func likeRules(_ *nixie.Delivery, _ *nixie.Failure, rules func() nixie.Verb) nixie.Verb {
	if rules() == nixie.Bury {
		return ""
	}
	return rules()
}

// againstRules is a function of a policy that holds what the other rules bury.
func againstRules(_ *nixie.Delivery, _ *nixie.Failure, rules func() nixie.Verb) nixie.Verb {
	if rules() == nixie.Bury {
		return nixie.Hold
	}
	return ""
}

// Exclude beats include, include beats the count, and hard caps beat all.
func TestDLQRules(t *testing.T) {
	rate, content := policy.MatchError(errRate), policy.MatchError(errContent)
	type dlq = loop.DLQPolicy
	type list = []policy.Matcher
	for _, c := range []struct {
		name    string
		p       dlq
		err     error
		attempt int
		age     time.Duration
		want    string // verb and cause
	}{
		{"first", dlq{}, errOther, 1, 0, "retry"},
		{"fourth", dlq{}, errOther, 4, 0, "retry"},
		{"fifth", dlq{}, errOther, 5, 0, "bury exhausted"},
		{"first of one", dlq{MaxDeliveryCount: 1}, errOther, 1, 0, "bury exhausted"},
		{"no count", dlq{MaxDeliveryCount: -1}, errOther, 9, 0, "retry"},
		{"marked", dlq{}, nixie.Permanent(errOther), 1, 0, "bury permanent"},
		{"include", dlq{Include: list{content}}, errContent, 1, 0, "bury permanent"},
		{"include, wrapped", dlq{Include: list{content}}, fmt.Errorf("ask: %w", errContent), 1, 0, "bury permanent"},
		{"include, exact", dlq{Include: list{content.Exact()}}, fmt.Errorf("ask: %w", errContent), 1, 0, "retry"},
		{"include by type", dlq{Include: list{policy.MatchType[*validationError]()}}, &validationError{"a"}, 1, 0, "bury permanent"},
		{"include by name", dlq{Include: list{policy.MatchName("ValidationError")}}, &validationError{"a"}, 1, 0, "bury permanent"},
		{"include by code", dlq{Include: list{policy.MatchCode(nixie.CodeDenied)}}, nixie.Errorf(nixie.CodeDenied, "no"), 1, 0,
			"bury permanent"},
		{"include by pattern", dlq{Include: list{policy.MatchText(regexp.MustCompile(`no \w+`))}}, errOther, 1, 0, "bury permanent"},
		{"not included", dlq{Include: list{content}}, errRate, 1, 0, "retry"},
		{"exclude", dlq{Exclude: list{rate}}, errRate, 20, 0, "retry"},
		{"exclude has no bound", dlq{Exclude: list{rate}}, errRate, 40, 0, "retry"},
		{"nor with a function that retries", dlq{Exclude: list{rate}, Decide: sometimes(nixie.Retry)}, errRate, 40, 0, "retry"},
		{"exclude, and another error", dlq{Exclude: list{rate}}, errOther, 40, 0, "bury exhausted"},
		{"exclude, and another error without a count", dlq{Exclude: list{rate}, MaxDeliveryCount: -1}, errOther, 40, 0, "bury exhausted"},
		{"exclude, and more visibility", dlq{Exclude: list{rate}}, named("VisibilityExpansionRequired"), 40, 0, "release"},
		{"exclude, and the handler retries", dlq{Exclude: list{rate}}, nixie.Verdict(nixie.Release, errOther), 40, 0, "release"},
		{"exclude, and the handler buries", dlq{Exclude: list{rate}}, nixie.Verdict(nixie.Bury, errRate), 40, 0, "bury permanent"},
		{"exclude beats include", dlq{Exclude: list{rate}, Include: list{rate}}, errRate, 1, 0, "retry"},
		{"exclude beats reject", dlq{Exclude: list{rate}, Reject: list{rate}}, errRate, 1, 0, "retry"},
		{"deliveries beat exclude", dlq{Exclude: list{rate}, MaxDeliveries: 7}, errRate, 7, 0, "bury exhausted"},
		{"age beats exclude", dlq{Exclude: list{rate}, MaxAge: time.Hour}, errRate, 1, time.Hour, "bury max-age"},
		{"age since it was redriven", dlq{Exclude: list{rate}, MaxAge: time.Hour}, errRate, 1, time.Hour, "retry"},
		{"reject", dlq{Reject: list{content}}, errContent, 1, 0, "discard"},
		{"reject beats include", dlq{Reject: list{content}, Include: list{content}}, errContent, 1, 0, "discard"},
		{"decide: bury", dlq{Decide: sometimes(nixie.Bury)}, errRate, 1, 0, "bury permanent"},
		{"decide: hold", dlq{Decide: sometimes(nixie.Hold)}, errRate, 1, 0, "hold permanent"},
		{"decide: discard", dlq{Decide: sometimes(nixie.Discard)}, errRate, 1, 0, "discard"},
		{"decide: retry", dlq{Decide: sometimes(nixie.Retry), Include: list{rate}}, errRate, 20, 0, "retry"},
		{"deliveries beat decide", dlq{Decide: sometimes(nixie.Retry)}, errRate, 25, 0, "bury exhausted"},
		{"decide: as the rules", dlq{Decide: likeRules}, errOther, 4, 0, "retry"},
		{"decide: as the rules, at the count", dlq{Decide: likeRules}, errOther, 5, 0, "bury exhausted"},
		{"decide: as the rules, rejected", dlq{Decide: likeRules, Reject: list{content}}, errContent, 1, 0, "discard"},
		{"decide: against the rules", dlq{Decide: againstRules}, errOther, 5, 0, "hold permanent"},
		{"decide: nothing", dlq{Decide: sometimes(nixie.Retry)}, errOther, 5, 0, "bury exhausted"},
		{"more visibility", dlq{}, named("VisibilityExpansionRequired"), 1, 0, "release"},
	} {
		q := must(loop.NewDLQ(c.p))(t)
		now := time.Unix(1e9, 0)
		d := &nixie.Delivery{Message: nixie.Message{Generation: 1, Attempts: c.attempt, Deliveries: c.attempt, EnqueuedAt: now.Add(-c.age)}}
		if strings.HasSuffix(c.name, "redriven") {
			d.RedrivenAt = now.Add(-time.Minute)
		}
		if q.Policy().Admit(d, now) != nil {
			t.Errorf("%s: the message may not even run", c.name)
		}
		st := q.Decide(d, q.Policy().Diagnose(d, c.err, policy.Attempt{StartedAt: now, FailedAt: now}), now)
		got := string(st.Verb)
		if st.Burial != nil {
			got += " " + string(st.Burial.Cause)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// named is an error of another language.
type named string

func (n named) Error() string     { return "an error" }
func (n named) ErrorName() string { return string(n) }

func TestBadDLQPolicies(t *testing.T) {
	for name, p := range map[string]loop.DLQPolicy{
		"count -2":         {MaxDeliveryCount: -2},
		"count too large":  {MaxDeliveryCount: policy.MaxCount + 1},
		"deliveries -2":    {MaxDeliveries: -2},
		"fewer deliveries": {MaxDeliveries: 3},
		"age -2":           {MaxAge: -2},
		"no end":           {MaxDeliveryCount: -1, MaxDeliveries: -1},
		"empty include":    {Include: make([]policy.Matcher, 1)},
		"empty exclude":    {Exclude: make([]policy.Matcher, 1)},
		"empty reject":     {Reject: make([]policy.Matcher, 1)},
	} {
		if _, err := loop.NewDLQ(p); !errors.Is(err, loop.ErrInvalidParameter) {
			t.Errorf("%s: %v, want an invalid parameter", name, err)
		}
	}
}

// A dead letter whose body is no T keeps it as it was.
func TestDeadLetterOfAnotherType(t *testing.T) {
	var l loop.DeadLetter[int]
	const fields = `"source_mailbox":"orders","dead_lettered_at":"2026-01-01T00:00:00Z","delivery_count":5`
	err := json.Unmarshal([]byte(`{"message_id":"01890a5d-ac96-774b-bcce-b302099a8057","body":{"a":1},`+fields+`}`), &l)
	if err != nil || string(l.Raw) != `{"a":1}` || l.Body != 0 || l.DeliveryCount != 5 || l.MessageID.IsZero() {
		t.Errorf("%+v, %v", l, err)
	}
	for _, text := range []string{
		`[]`, `{`, `{"body":1,"delivery_count":"five"}`, `{}`, `null`, `{"id":7,"body":{"a":1}}`, `{"body":1,` + fields + `}`,
		`{"message_id":"01890a5d-ac96-774b-bcce-b302099a8057","body":{"a":1},"source_mailbox":"orders"}`,
	} {
		if l = (loop.DeadLetter[int]{}); json.Unmarshal([]byte(text), &l) == nil {
			t.Errorf("%s is a dead letter: %+v", text, l)
		}
	}
}

// A notice that a store makes and a DeadLetter have the same members.
func TestNoticeIsADeadLetter(t *testing.T) {
	members := func(of any) (names []string) {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if f.IsExported() {
				names = append(names, f.Name+" "+f.Tag.Get("json"))
			}
		}
		return names
	}
	if a, b := members(store.Notice{}), members(loop.DeadLetter[string]{}); !slices.Equal(a, b) {
		t.Errorf("a notice has %q\na dead letter has %q", a, b)
	}
}

// What Exclude names is retried as long as it lasts, with the wait at its cap: no letter after 40
// deliveries. Messages whose holder vanished, and those that are given back, go on too; but a
// handler that only gives back ends.
func TestExcludedErrorsHaveNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		requests := must(loop.In[request, result](st, "requests", loop.Config{}))(t)
		for _, text := range []string{"limited", "given back"} {
			must(requests.Send(ctx, request{Request: text}))(t)
		}
		runs := map[string]int{}
		begun, last := time.Now(), time.Duration(0)
		main := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
			Requests: requests, Worker: worker.Config{Concurrency: 1, Logger: quiet},
			DLQ: loop.DLQPolicy{Exclude: []policy.Matcher{policy.MatchError(errRate)}},
			Execute: func(_ context.Context, r request) (float64, error) {
				runs[r.Request]++
				if r.Request == "given back" {
					return 0, nixie.Verdict(nixie.Release, nil)
				}
				last = time.Since(begun)
				return 0, errRate
			},
		}))(t)
		run, stop := context.WithTimeout(ctx, 9*time.Hour)
		defer stop()
		if err := main.Run(run); err != nil {
			t.Fatal(err)
		}
		letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
		if err != nil || len(letters) != 1 || letters[0].Cause != nixie.CauseExhausted {
			t.Errorf("letters: %+v, %v; want the one that was only given back", letters, err)
		}
		// 14 waits from 1 to 14 minutes, and then one each 15 minutes.
		if runs["limited"] < 40 || runs["given back"] > 30 {
			t.Errorf("%v runs, the last after %s", runs, last)
		}

		// Its holder vanishes after 40 deliveries: it is judged, and runs on.
		dlq := must(loop.NewDLQ(loop.DLQPolicy{Exclude: []policy.Matcher{policy.MatchError(errRate)}}))(t)
		d := &nixie.Delivery{Message: nixie.Message{Generation: 1, Attempts: 40, Deliveries: 42, Crashes: 1}, Abandoned: true}
		if got := dlq.Decide(d, dlq.Policy().Abandoned(d, time.Now()), time.Now()); got.Verb != nixie.Retry || got.Delivery != d {
			t.Errorf("after a crash: %s", got.Verb)
		}
		d.Crashes, d.Deliveries, d.AbandonedAlone = 3, 46, true
		got := dlq.Decide(d, dlq.Policy().Abandoned(d, time.Now()), time.Now())
		if got.Burial == nil || got.Burial.Cause != nixie.CausePoison {
			t.Errorf("after three: %s", got.Verb)
		}
	})
}
