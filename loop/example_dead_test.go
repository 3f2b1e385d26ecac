package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

type (
	ask  = loop.Request[string]
	told = loop.Result[string]
	dead = loop.DeadLetter[ask]
)

// shop is a main loop in a store in memory. Requests that begin with "bad" or "slow" die at once,
// until the provider is repaired.
type shop struct {
	st       *memory.Store
	requests *loop.Mailbox[ask, told]
	answers  *loop.Mailbox[told, struct{}]
	dead     *loop.Mailbox[dead, struct{}]
	repaired bool
	log      *slog.Logger
}

func newShop() *shop {
	s := &shop{st: memory.New(memory.Options{}), log: slog.New(slog.DiscardHandler)}
	s.requests, _ = loop.In[ask, told](s.st, "requests", loop.Config{})
	s.answers, _ = loop.In[told, struct{}](s.st, "answers", loop.Config{})
	s.dead, _ = loop.In[dead, struct{}](s.st, "requests-dlq", loop.Config{})
	return s
}

// serve sends requests, runs a main loop until as many are answered, and prints the answers.
func (s *shop) serve(requests ...string) {
	for _, text := range requests {
		_, _ = s.requests.Send(context.Background(), ask{Request: text, RequestID: "id of " + text}, loop.ReplyTo("answers"))
	}
	s.answer(len(requests))
}

func (s *shop) answer(most int) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	main, err := loop.NewMainLoop(loop.MainConfig[string, string]{
		Requests: s.requests,
		Execute: func(_ context.Context, req ask) (string, error) {
			switch kind, _, _ := strings.Cut(req.Request, " "); {
			case kind == "bad":
				return "", errInvalid
			case kind == "slow" && !s.repaired:
				return "", errTimeout
			}
			return "done: " + req.Request, nil
		},
		DLQ:    loop.DLQPolicy{Include: []policy.Matcher{policy.MatchError(errInvalid), policy.MatchError(errTimeout)}},
		Worker: worker.Config{Concurrency: 1, Logger: s.log},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- main.Run(ctx) }()
	for range most {
		got, _ := s.answers.Receive(ctx, loop.Wait(loop.MaxWait))
		fmt.Println("answer:", got[0].Body.Output+got[0].Body.Error)
		_ = got[0].Acknowledge(ctx)
	}
	stop()
	if err := <-done; err != nil {
		fmt.Println(err)
	}
}

// handle hands dead letters to a handler.
func (s *shop) handle(most int, handler func(context.Context, dead) error) {
	k, err := loop.NewConsumer(loop.ConsumerConfig[ask]{
		Mailbox: s.dead, Handle: handler, MaxLetters: most, Worker: worker.Config{Logger: s.log},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := k.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
}

// engine redrives letters, also those that died at once.
func (s *shop) engine() *redrive.Engine {
	e, err := redrive.New(redrive.Config{Store: s.st, Force: true})
	if err != nil {
		fmt.Println(err)
	}
	return e
}

// replay redrives the letters that match a filter. It is the same message that runs again, in its
// next generation, and the audit has who did it and why.
func (s *shop) replay(filter nixie.Filter) {
	ctx, e := context.Background(), s.engine()
	op := store.Operation{Event: store.OnRedrive, Actor: "replayer", Reason: "the provider is repaired"}
	op, err := e.Plan(ctx, op, filter, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := e.Run(ctx, op.ID)
	fmt.Println("replayed", done.Done, err)
}

// A request runs, and is answered, retried or buried. While it is retried its sender hears nothing.
func ExampleMainLoop_flow() {
	s := newShop()
	s.serve("good order", "bad order")
	letters, _, _ := s.st.Letters(context.Background(), nixie.Filter{}, store.Page{})
	fmt.Println(len(letters), "letter:", letters[0].Cause)
	// Output:
	// answer: done: good order
	// answer: Dead-lettered after 1 attempts: validation failed
	// 1 letter: permanent
}

// A dead letter tells what died, of what, and who waits for an answer.
func ExampleDeadLetter() {
	s := newShop()
	s.serve("bad order")
	got, _ := s.dead.Receive(context.Background())
	l := got[0].Body
	fmt.Println(l.Body.Request, "of", l.SourceMailbox, "after", l.DeliveryCount, "attempt:", l.LastError)
	fmt.Println(l.LastErrorType, l.RequestID, "for", l.ReplyTo)
	text, _ := json.Marshal(l)
	fmt.Println(json.Valid(text), l.EnqueuedAt.After(l.FirstReceivedAt), l.FirstReceivedAt.After(l.DeadLetteredAt))
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// bad order of requests after 1 attempt: validation failed
	// *errors.errorString id of bad order for answers
	// true false false
}

// Evaluations run over a mailbox like other requests.
func ExampleEvalLoop_mailbox() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st := memory.New(memory.Options{})
	requests, _ := loop.EvalsIn[string, string](st, "evals", loop.Config{})
	answers, _ := loop.In[loop.Result[loop.EvalResult], struct{}](st, "scores", loop.Config{})
	main, err := loop.NewEvalLoop(loop.EvalConfig[string, string, string]{
		Requests: requests,
		Eval: loop.EvalLoop[string, string, string]{
			Run:      func(_ context.Context, input string) (string, error) { return strings.ToUpper(input), nil },
			Evaluate: loop.ExactMatch[string](),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- main.Run(ctx) }()
	sample := loop.Sample[string, string]{ID: "greeting", Input: "hello", Expected: "HELLO"}
	_, _ = requests.Send(ctx, loop.EvalRequest[string, string]{Sample: sample}.Ask(), loop.ReplyTo("scores"))
	got, _ := answers.Receive(ctx, loop.Wait(loop.MaxWait))
	fmt.Println(got[0].Body.Output.SampleID, got[0].Body.Output.Score.Passed)
	stop()
	fmt.Println(<-done)
	// Output:
	// greeting true
	// <nil>
}

// A consumer in its own process looks at what has died.
func ExampleDeadLetterConsumer() {
	s := newShop()
	s.serve("bad order", "slow order")
	s.handle(2, func(_ context.Context, l dead) error {
		fmt.Println(l.Body.Request, "died:", l.LastError)
		return nil // an error would wait an hour, and never die itself
	})
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// answer: Dead-lettered after 1 attempts: timeout
	// bad order died: validation failed
	// slow order died: timeout
}

// An alert counts dead letters by error, and wakes a person for some.
func ExampleDeadLetterConsumer_alert() {
	s := newShop()
	s.serve("bad order of a VIP")
	counters := map[string]int{}
	s.handle(1, func(_ context.Context, l dead) error {
		counters["dlq.messages{source="+l.SourceMailbox+",error_type="+l.LastErrorType+"}"]++
		if strings.Contains(l.Body.Request, "VIP") {
			fmt.Println("page: critical request dead-lettered:", l.RequestID)
		}
		return nil
	})
	fmt.Println(counters)
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// page: critical request dead-lettered: id of bad order of a VIP
	// map[dlq.messages{source=requests,error_type=*errors.errorString}:1]
}

// A handler that never fails: it notes its own failures and gives those letters up.
func ExampleDeadLetterConsumer_safe() {
	s := newShop()
	s.serve("bad order")
	discarded := 0
	s.handle(1, func(context.Context, dead) error {
		if err := errors.New("cannot be processed"); err != nil {
			discarded++
			return nixie.Verdict(nixie.Discard, err)
		}
		return nil
	})
	fmt.Println("discarded", discarded)
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// discarded 1
}

// A replay is a redrive: the message itself runs again, and answers who asked for it first.
func ExampleDeadLetter_Replay() {
	s := newShop()
	s.serve("slow order")
	s.repaired = true
	s.handle(1, func(ctx context.Context, l dead) error {
		return l.Replay(ctx, s.engine(), "replayer", "the provider is repaired")
	})
	s.answer(1)
	// Output:
	// answer: Dead-lettered after 1 attempts: timeout
	// answer: done: slow order
}

// A handler may choose what it replays, for example by the type of the error. What it leaves waits
// in the dead letter office.
func ExampleDeadLetter_Replay_selective() {
	s := newShop()
	s.serve("bad order", "slow order")
	s.repaired = true
	s.handle(2, func(ctx context.Context, l dead) error {
		if !strings.Contains(l.LastError, "timeout") {
			return nil
		}
		return l.Replay(ctx, s.engine(), "replayer", "the provider is repaired")
	})
	s.answer(1)
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// answer: Dead-lettered after 1 attempts: timeout
	// answer: done: slow order
}

// A filter chooses what is replayed. It claims nothing, so what it leaves stays as it was.
func ExampleDeadLetter_filteredReplay() {
	s := newShop()
	s.serve("bad order", "slow order", "slow parcel")
	s.repaired = true
	s.replay(nixie.Filter{Queues: []string{"requests"}, Text: "timeout"})
	s.answer(2)
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// answer: Dead-lettered after 1 attempts: timeout
	// answer: Dead-lettered after 1 attempts: timeout
	// replayed 2 <nil>
	// answer: done: slow order
	// answer: done: slow parcel
}

// A message that is on its way, or has succeeded, is not replayed again.
func ExampleDeadLetter_replayOnce() {
	s := newShop()
	s.serve("slow order")
	s.repaired = true
	s.replay(nixie.Filter{})
	s.replay(nixie.Filter{})
	s.answer(1)
	s.replay(nixie.Filter{})
	// Output:
	// answer: Dead-lettered after 1 attempts: timeout
	// replayed 1 <nil>
	// replayed 0 <nil>
	// answer: done: slow order
	// replayed 0 <nil>
}

// A loop logs each death with what a person has to know.
func ExampleMainLoop_log() {
	s := newShop()
	var lines strings.Builder
	s.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "id", "type", "verb", "cause", "attempts":
			return slog.Attr{}
		}
		return a
	}}))
	s.serve("bad order")
	fmt.Print(lines.String())
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// level=WARN msg="message died" queue=requests reason=handler error="validation failed"
}

// The health port tells how many dead letters wait.
func ExampleGroup_checks() {
	s := newShop()
	s.serve("bad order")
	group, err := loop.NewGroup(loop.GroupConfig{
		Loops:  []loop.Loop{scores(s.st, worker.Config{})},
		Checks: []loop.Check{loop.DepthOf(s.dead, 100)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- group.Run(ctx) }()
	for len(group.Unready()) > 0 { // its loops begin to run
		runtime.Gosched()
	}
	answer := httptest.NewRecorder()
	group.Health().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/health/ready", nil))
	fmt.Print(answer.Code, " ", answer.Body)
	stop()
	if err := <-done; err != nil {
		fmt.Println(err)
	}
	// Output:
	// answer: Dead-lettered after 1 attempts: validation failed
	// 200 {"status":"healthy","dlq":{"name":"requests-dlq","depth":1,"threshold":100}}
}

// Messages that wait, and letters, do not expire. A queue may keep what has ended for another time.
func ExampleMailbox_retention() {
	s := newShop()
	for queue, days := range map[string]time.Duration{"requests": 3, "requests-dlq": 30} {
		settings := nixie.QueueSettings{Retention: days * 24 * time.Hour}
		if err := store.Configure(context.Background(), s.st, queue, settings, "ann", "as agreed"); err != nil {
			fmt.Println(err)
		}
		messages, letters, _ := settings.Kept()
		fmt.Println(queue == "requests" && messages == 72*time.Hour || messages == 720*time.Hour, letters == nixie.Forever)
	}
	// Output:
	// true true
	// true true
}
