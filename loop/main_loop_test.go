package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

type (
	request = loop.Request[string]
	result  = loop.Result[float64]
	execute = func(context.Context, request) (float64, error)
)

// bureau is a main loop in a store in memory, with the mailboxes that hear of it.
type bureau struct {
	st       *memory.Store
	requests *loop.Mailbox[request, result]
	answers  *loop.Mailbox[result, struct{}]
	dead     *loop.Mailbox[loop.DeadLetter[request], struct{}]
	loop     *loop.MainLoop[string, float64]
}

var quiet = slog.New(slog.DiscardHandler)

func newBureau(t fataler, dlq loop.DLQPolicy, do execute) *bureau {
	t.Helper()
	o := &bureau{st: memory.New(memory.Options{})}
	o.requests = must(loop.In[request, result](o.st, "requests", loop.Config{Logger: quiet}))(t)
	o.answers = must(loop.In[result, struct{}](o.st, "answers", loop.Config{}))(t)
	o.dead = must(loop.In[loop.DeadLetter[request], struct{}](o.st, "requests-dlq", loop.Config{}))(t)
	o.loop = must(loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: o.requests, Execute: do, DLQ: dlq, Worker: worker.Config{Name: "w1", Concurrency: 1, Logger: quiet},
	}))(t)
	return o
}

// until runs the loop until a number of requests are over. It returns the answers.
func (o *bureau) until(t fataler, ended int) (answers []result) {
	t.Helper()
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- o.loop.Run(run) }()
	for {
		queues := must(o.st.Queues(ctx, store.QueueQuery{Names: []string{"requests"}}))(t)
		if len(queues) == 1 && queues[0].Total == int64(ended) && queues[0].Unfinished() == 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for {
		got := must(o.answers.Receive(ctx, loop.Max(10)))(t)
		if len(got) == 0 {
			return answers
		}
		for _, m := range got {
			answers = append(answers, m.Body)
		}
	}
}

// letters returns the letters, whole.
func (o *bureau) letters(t fataler) []nixie.Letter {
	t.Helper()
	all, _, err := o.st.Letters(ctx, nixie.Filter{}, store.Page{Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The sender hears nothing while a request is retried, and once when it is done or has died. Each
// attempt has a run ID of its own, and the same request ID.
func TestMainLoopRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := map[string][]loop.RunContext{}
		o := newBureau(t, loop.DLQPolicy{}, func(ctx context.Context, req request) (float64, error) {
			runs[req.Request] = append(runs[req.Request], loop.RunOf(ctx))
			if req.Request == "good" && len(runs["good"]) == 3 {
				return 42, nil
			}
			return 0, errOther
		})
		trace := nixie.WithHeader(nixie.HeaderTraceParent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		must(o.requests.Send(ctx, request{Request: "good", RequestID: "r-1"}, loop.ReplyTo("answers"), trace))(t)
		must(o.requests.Send(ctx, request{Request: "bad", RequestID: "r-2"}, loop.ReplyTo("answers")))(t)
		must(o.requests.Send(ctx, request{Request: "bad, not asked for"}))(t)
		answers := o.until(t, 3)

		if len(answers) != 2 || answers[0].RequestID != "r-1" || answers[0].Output != 42 || answers[0].Error != "" ||
			answers[1].RequestID != "r-2" || answers[1].Error != "Dead-lettered after 5 attempts: no idea" {
			t.Errorf("answers: %+v", answers)
		}
		if len(o.letters(t)) != 2 || len(must(o.dead.Receive(ctx, loop.Max(10)))(t)) != 2 {
			t.Error("there are not two letters and two dead letters")
		}
		ids := map[nixie.ID]bool{}
		for i, run := range runs["good"] {
			ids[run.RunID] = true
			if run.RequestID != "r-1" || run.Attempt != i+1 || run.WorkerID != "w1" || run.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" {
				t.Errorf("run context of attempt %d: %+v", i+1, run)
			}
		}
		if len(ids) != 3 || answers[0].RunContext != runs["good"][2] {
			t.Errorf("%d run IDs; the answer is of run %+v", len(ids), answers[0].RunContext)
		}
	})
}

// What ends a request at once, and the only answer to it.
func TestMainLoopEnds(t *testing.T) {
	const died = "Dead-lettered after 1 attempts: "
	reject := policy.MatchError(errContent)
	for name, c := range map[string]struct {
		req     request
		raw     []byte // instead of req
		replies []nixie.Option
		err     error
		out     float64
		want    string // the error of the answer; "-" is no answer
		dead    int
	}{
		"done":           {out: 1.5},
		"not asked":      {replies: []nixie.Option{}, want: "-"},
		"permanent":      {err: nixie.Permanent(errOther), want: died + "no idea", dead: 1},
		"rejected":       {err: errContent, want: "Rejected after 1 attempts: content policy"},
		"undecodable":    {raw: []byte("\xff{"), want: died + "body of message", dead: 1},
		"no answer":      {out: math.NaN(), want: died + "body for mailbox answers cannot be encoded", dead: 1},
		"past deadline":  {req: request{Deadline: time.Unix(1, 0)}, want: died + "deadline 1970-01-01T00:00:01Z", dead: 1},
		"over budget":    {req: request{Budget: loop.Budget{Tokens: 9}}, want: died + "budget of the request is used up: 10 of 9", dead: 1},
		"within budget":  {req: request{Budget: loop.Budget{Tokens: 10}}, out: 1},
		"panic":          {err: errPanic, want: died + "panic: no", dead: 1},
		"bad reply name": {raw: []byte(`{}`), replies: []nixie.Option{loop.ReplyTo(strings.Repeat("x", 300))}, want: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			panics := policy.MatchReason(nixie.ReasonPanic)
			o := newBureau(t, loop.DLQPolicy{Reject: []policy.Matcher{reject}, Include: []policy.Matcher{panics}},
				func(ctx context.Context, _ request) (float64, error) {
					loop.SessionOf(ctx).Spend(10)
					if c.err == errPanic {
						panic("no")
					}
					return c.out, errors.Join(c.err, context.Cause(ctx))
				})
			opts := []nixie.Option{loop.ReplyTo("answers")}
			if c.replies != nil {
				opts = c.replies
			}
			if c.raw == nil {
				must(o.requests.Send(ctx, c.req, opts...))(t)
			} else {
				m := nixie.Message{Queue: "requests", Body: c.raw}
				for _, set := range opts {
					set(&m)
				}
				must(o.st.Enqueue(ctx, m))(t)
			}
			answers, letters := o.until(t, 1), o.letters(t)
			dead := must(o.dead.Receive(ctx, loop.Max(10)))(t)
			if (c.want == "-") != (len(answers) == 0) || len(answers) > 1 || len(letters) != c.dead || len(dead) != c.dead {
				t.Fatalf("%d answers, %d letters and %d dead letters", len(answers), len(letters), len(dead))
			}
			if len(answers) == 1 {
				got := answers[0]
				if !strings.HasPrefix(got.Error, c.want) || c.want == "" && got.Error != "" || c.want == "" && got.Output != c.out {
					t.Errorf("the answer is %+v", got)
				}
			}
			if name == "undecodable" && (string(dead[0].Body.Raw) != string(c.raw) || string(letters[0].Message.Body) != string(c.raw)) {
				t.Errorf("the bytes are %q and %q", dead[0].Body.Raw, letters[0].Message.Body)
			}
		})
	}
}

// A mailbox for answers that is closed: the answer dies, and the request is done.
func TestMainLoopTargetGone(t *testing.T) {
	for _, closed := range [][]string{{"answers"}, {"answers", "answers-dlq"}} {
		runs := 0
		o := newBureau(t, loop.DLQPolicy{}, func(context.Context, request) (float64, error) { runs++; return 42, nil })
		for _, name := range closed {
			if err := store.Configure(ctx, o.st, name, nixie.QueueSettings{Closed: true}, "ada", "moved"); err != nil {
				t.Fatal(err)
			}
		}
		must(o.requests.Send(ctx, request{RequestID: "r-1"}, loop.ReplyTo("answers")))(t)
		answers := o.until(t, 1)
		dead := must(must(loop.In[loop.DeadLetter[result], struct{}](o.st, "answers-dlq", loop.Config{}))(t).Receive(ctx))(t)
		if runs != 1 || len(answers) != 0 || len(o.letters(t)) != 0 || len(dead) != 2-len(closed) {
			t.Errorf("%d runs, %d answers, %d letters and %d dead letters", runs, len(answers), len(o.letters(t)), len(dead))
		}
		if len(dead) == 1 {
			l := dead[0].Body
			if l.Body.Output != 42 || l.SourceMailbox != "answers" || l.RequestID != "r-1" || !strings.Contains(l.LastError, "closed") {
				t.Errorf("the dead letter of the answer: %+v", l)
			}
		}
	}
}

// A broker has no channel for the answer: it dies, and not the request.
func TestMainLoopChannelMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := brokertest.NewTimed()
		b := broker.Config{Driver: box.Join(t), Queue: box.Source(), Letters: broker.DefaultLetters}
		requests := must(loop.Over[request, result](b, loop.Config{Logger: quiet}))(t)
		runs := 0
		l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
			Requests: requests, Worker: worker.Config{Concurrency: 1, Logger: quiet}, DLQ: loop.DLQPolicy{Mailbox: loop.NoMailbox},
			Execute: func(context.Context, request) (float64, error) { runs++; return 42, nil },
		}))(t)
		must(requests.Send(ctx, request{}, loop.ReplyTo("nowhere")))(t)
		run, stop := context.WithTimeout(ctx, 20*time.Minute)
		defer stop()
		if err := l.Run(run); err != nil {
			t.Fatal(err)
		}
		left, letters := must(requests.Receive(ctx))(t), box.Records(t, broker.ChannelName(broker.DefaultLetters, box.Source()))
		if runs != 1 || len(left) != 0 || len(letters) != 0 {
			t.Errorf("%d runs, %d requests wait, %d letters", runs, len(left), len(letters))
		}
	})
}

var errPanic = errors.New("panic")

// A deadline ends the context of an attempt, and the request with it.
func TestMainLoopDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newBureau(t, loop.DLQPolicy{}, func(ctx context.Context, _ request) (float64, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		must(o.requests.Send(ctx, request{Deadline: time.Now().Add(time.Minute)}, loop.ReplyTo("answers")))(t)
		begun := time.Now()
		answers := o.until(t, 1)
		took := time.Since(begun)
		if len(answers) != 1 || !strings.Contains(answers[0].Error, "Dead-lettered after 1 attempts: deadline") || took > 2*time.Minute {
			t.Errorf("answers after %s: %+v", took, answers)
		}
	})
}

// A request whose deadline has come, or has passed long ago, is not begun.
func TestMainLoopBeginsNothingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		o := newBureau(t, loop.DLQPolicy{}, func(context.Context, request) (float64, error) { runs++; return 1, nil })
		for _, late := range []time.Duration{0, time.Hour} {
			must(o.requests.Send(ctx, request{Deadline: time.Now().Add(-late)}, loop.ReplyTo("answers")))(t)
		}
		answers := o.until(t, 2)
		for _, a := range answers {
			if !strings.Contains(a.Error, "has passed: it was not begun") {
				t.Errorf("the answer is %+v", a)
			}
		}
		if runs != 0 || len(answers) != 2 || len(o.letters(t)) != 2 {
			t.Errorf("%d runs, %d answers, %d letters", runs, len(answers), len(o.letters(t)))
		}
	})
}

// The dead letter of a request, in the form that other programs read.
func TestGoldenDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newBureau(t, loop.DLQPolicy{MaxDeliveryCount: 2, Mailbox: "dead.{source}", Routes: []loop.Route{
			{When: policy.MatchError(errRate), Mailbox: "throttled"},
		}}, func(_ context.Context, req request) (float64, error) {
			if req.Request == "rate" {
				return 0, errRate
			}
			return 0, &validationError{"amount"}
		})
		must(o.requests.Send(ctx, request{Request: "order", RequestID: "r-1"}, loop.ReplyTo("answers")))(t)
		must(o.requests.Send(ctx, request{Request: "rate"}))(t)
		o.until(t, 2)
		for name, want := range map[string]string{"dead.requests": `{
  "message_id": "ID",
  "body": {
    "request": "order",
    "request_id": "r-1"
  },
  "source_mailbox": "requests",
  "delivery_count": 2,
  "last_error": "bad amount",
  "last_error_type": "ValidationError",
  "dead_lettered_at": "2000-01-01T00:01:00Z",
  "first_received_at": "2000-01-01T00:00:00Z",
  "enqueued_at": "2000-01-01T00:00:00Z",
  "request_id": "r-1",
  "reply_to": "answers",
  "generation": 1
}`, "throttled": `"last_error": "rate limit"`} {
			box := must(loop.In[json.RawMessage, struct{}](o.st, name, loop.Config{}))(t)
			m := one(t, box)
			var l loop.DeadLetter[json.RawMessage]
			if err := json.Unmarshal(m.Body, &l); err != nil {
				t.Fatal(err)
			}
			got := string(must(json.MarshalIndent(l, "", "  "))(t))
			if got = strings.Replace(got, l.MessageID.String(), "ID", 1); !strings.Contains(got, want) {
				t.Errorf("%s has\n%s", name, got)
			}
		}
	})
}

// Without a mailbox there is one attempt, and its error is in the result.
func TestExecute(t *testing.T) {
	var failure error
	o := newBureau(t, loop.DLQPolicy{}, func(ctx context.Context, req request) (float64, error) {
		if req.Request == "panic" {
			panic("no")
		}
		return float64(loop.RunOf(ctx).Attempt), failure
	})
	first, second := o.loop.Execute(ctx, request{RequestID: "r-1"}), o.loop.Execute(ctx, request{})
	if first.RequestID != "r-1" || first.Output != 1 || first.Error != "" || first.CompletedAt.IsZero() ||
		second.RequestID == "" || second.RunContext.RunID == first.RunContext.RunID {
		t.Errorf("%+v and %+v", first, second)
	}
	failure = errOther
	if r := o.loop.Execute(ctx, request{}); r.Error != "no idea" {
		t.Errorf("with an error: %+v", r)
	}
	if r := o.loop.Execute(ctx, request{Request: "panic"}); r.Error != "panic: no" {
		t.Errorf("with a panic: %+v", r)
	}
}

func TestBadMainLoops(t *testing.T) {
	zero := func(context.Context, request) (float64, error) { return 0, nil }
	o := newBureau(t, loop.DLQPolicy{}, zero)
	good := loop.MainConfig[string, float64]{Requests: o.requests, Execute: zero}
	for name, spoil := range map[string]func(c *loop.MainConfig[string, float64]){
		"no mailbox":       func(c *loop.MainConfig[string, float64]) { c.Requests = nil },
		"no function":      func(c *loop.MainConfig[string, float64]) { c.Execute = nil },
		"its own policy":   func(c *loop.MainConfig[string, float64]) { c.Worker.Policy = &policy.Policy{} },
		"bad dead letters": func(c *loop.MainConfig[string, float64]) { c.DLQ.MaxDeliveryCount = -2 },
		"bad DLQ mailbox":  func(c *loop.MainConfig[string, float64]) { c.DLQ.Mailbox = strings.Repeat("x", 300) },
		"route without name": func(c *loop.MainConfig[string, float64]) {
			c.DLQ.Routes = []loop.Route{{When: policy.MatchError(errRate)}}
		},
		"empty route":    func(c *loop.MainConfig[string, float64]) { c.DLQ.Routes = []loop.Route{{Mailbox: "a"}} },
		"concurrency -1": func(c *loop.MainConfig[string, float64]) { c.Worker.Concurrency = -1 },
		"lease 1":        func(c *loop.MainConfig[string, float64]) { c.Worker.Lease = 1 },
		"receives -1":    func(c *loop.MainConfig[string, float64]) { c.Worker.Until.Receives = -1 },
	} {
		c := good
		spoil(&c)
		if _, err := loop.NewMainLoop(c); !errors.Is(err, loop.ErrInvalidParameter) {
			t.Errorf("%s: %v, want an invalid parameter", name, err)
		}
	}
}

// An evaluation over a mailbox: a bad sample is an error result, and a lost connection is retried
// like any request.
func TestEvalOverMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type evalRequest = loop.EvalRequest[string, string]
		lost := 0
		e := loop.EvalLoop[string, string, string]{Evaluate: loop.ExactMatch[string]()}
		e.Run = func(_ context.Context, in string) (string, error) {
			switch {
			case in == "bad":
				return "", errOther
			case in == "away" || in == "lost" && lost == 0:
				lost++
				return "", loop.ErrConnection
			}
			return in, nil
		}
		st := memory.New(memory.Options{})
		requests := must(loop.In[loop.Request[evalRequest], loop.Result[loop.EvalResult]](st, "requests", loop.Config{}))(t)
		answers := must(loop.In[loop.Result[loop.EvalResult], struct{}](st, "answers", loop.Config{}))(t)
		l := must(loop.NewMainLoop(loop.MainConfig[evalRequest, loop.EvalResult]{
			Requests: requests, Worker: worker.Config{Concurrency: 1, Logger: quiet}, DLQ: loop.DLQPolicy{Mailbox: loop.NoMailbox},
			Execute: func(ctx context.Context, req loop.Request[evalRequest]) (loop.EvalResult, error) {
				return e.Execute(ctx, req.Request)
			},
		}))(t)
		for _, in := range []string{"good", "bad", "lost", "away"} {
			s := loop.Sample[string, string]{ID: in, Input: in, Expected: in}
			must(requests.Send(ctx, loop.Request[evalRequest]{Request: evalRequest{Sample: s}}, loop.ReplyTo("answers")))(t)
		}
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- l.Run(run) }()
		got := map[string]string{}
		for len(got) < 4 {
			for _, m := range must(answers.Receive(ctx, loop.Max(10), loop.Wait(20*time.Second)))(t) {
				got[m.Body.Output.SampleID] = fmt.Sprint(m.Body.Output.Score.Passed, m.Body.Output.Error, m.Body.Error)
				if err := m.Acknowledge(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"good": "true", "lost": "true", "bad": "falseno idea",
			"": "falseDead-lettered after 5 attempts: mailbox cannot be reached"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v", got)
		}
	})
}
