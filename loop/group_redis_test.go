package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// The program of the specification: a main loop, an eval loop and a consumer of dead letters over a
// real server, with the watchdog on, and no size given.
func TestDefaultSizesOverRedis(t *testing.T) {
	server.Need(t)
	prefix := fmt.Sprintf("sizes%d-", os.Getpid())
	work := worker.Config{Logger: quiet}
	over := func(name string, others ...string) broker.Config {
		return opened(t, prefix+name, append(others, prefix+name+".dlq")...)
	}
	requests := must(loop.Over[request, result](over("requests", prefix+"requests-dlq"), loop.Config{Logger: quiet}))(t)
	samples := must(loop.Over[loop.Request[loop.EvalRequest[string, string]], loop.Result[loop.EvalResult]](
		over("evals", prefix+"evals-dlq"), loop.Config{Logger: quiet}))(t)
	dead := must(loop.Over[deadRequest, struct{}](over("requests-dlq"), loop.Config{Logger: quiet}))(t)
	answers := must(loop.Over[result, struct{}](over("answers"), loop.Config{Logger: quiet}))(t)
	scores := must(loop.Over[loop.Result[loop.EvalResult], struct{}](over("scores"), loop.Config{Logger: quiet}))(t)

	main := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: requests, Worker: work,
		DLQ: loop.DLQPolicy{MaxDeliveryCount: 5, Include: []policy.Matcher{policy.MatchError(errContent)}},
		Execute: func(_ context.Context, r request) (float64, error) {
			if r.Request == "bad" {
				return 0, errContent
			}
			return 42, nil
		},
	}))(t)
	evals := must(loop.NewEvalLoop(loop.EvalConfig[string, string, string]{
		Requests: samples, Worker: work,
		Eval: loop.EvalLoop[string, string, string]{
			Run:      func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil },
			Evaluate: loop.ExactMatch[string](),
		},
	}))(t)
	alerts := make(chan deadRequest, 1)
	consumer := must(loop.NewConsumer(loop.ConsumerConfig[request]{Mailbox: dead, Worker: work,
		Handle: func(_ context.Context, l deadRequest) error { alerts <- l; return nil }}))(t)

	var lines bytes.Buffer
	group := must(loop.NewGroup(loop.GroupConfig{
		Loops: []loop.Loop{main, evals, consumer}, Checks: []loop.Check{loop.DepthOf(dead, 100)},
		Watchdog: true, Threshold: 720 * time.Second, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	}))(t)
	if !strings.Contains(lines.String(), "visibility=18m0s") {
		t.Errorf("the group said %s", &lines)
	}
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- group.Run(run) }()
	for text, want := range map[string]string{"good": "42", "bad": "Dead-lettered after 1 attempts"} {
		must(requests.Send(ctx, request{Request: text}, loop.ReplyTo(answers.Name())))(t)
		got := must(answers.Receive(ctx, loop.Wait(loop.MaxWait)))(t)
		if len(got) != 1 || !strings.Contains(fmt.Sprint(got[0].Body.Output, got[0].Body.Error), want) {
			t.Errorf("answer to %s: %+v", text, got)
		}
	}
	if l := <-alerts; l.Body.Request != "bad" || l.SourceMailbox != requests.Name() {
		t.Errorf("the consumer heard of %+v", l)
	}
	sample := loop.EvalRequest[string, string]{Sample: loop.Sample[string, string]{ID: "s", Input: "hello", Expected: "HELLO"}}
	must(samples.Send(ctx, sample.Ask(), loop.ReplyTo(scores.Name())))(t)
	if got := must(scores.Receive(ctx, loop.Wait(loop.MaxWait)))(t); len(got) != 1 || !got[0].Body.Output.Score.Passed {
		t.Errorf("score: %+v", got)
	}
	ready := probe(group, http.MethodGet, "/health/ready")
	if !strings.HasPrefix(ready, "200") || !strings.Contains(ready, `"threshold":100`) {
		t.Errorf("ready: %s", ready)
	}
	for name, l := range map[string]interface {
		Running() bool
		Heartbeat() time.Time
	}{"main": main, "evals": evals, "consumer": consumer} {
		if !l.Running() || l.Heartbeat().IsZero() {
			t.Errorf("%s: running %t, heartbeat %s", name, l.Running(), l.Heartbeat())
		}
	}
	stop()
	if err := <-done; err != nil || consumer.Running() {
		t.Errorf("at the end: %v, running %t", err, consumer.Running())
	}
}
