package loop_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// A main loop answers, and tells of deaths, in a file and over a server in the same way.
func TestMainLoopOnDisk(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		st := must(sqlite.Open(t.TempDir()+"/nixie.db", sqlite.Options{}))(t)
		defer func() { _ = st.Close() }()
		answersAll(t,
			must(loop.In[request, result](st, "requests", loop.Config{Logger: quiet}))(t),
			must(loop.In[result, struct{}](st, "answers", loop.Config{}))(t),
			must(loop.In[loop.DeadLetter[request], struct{}](st, "requests-dlq", loop.Config{}))(t))
	})
	t.Run("redis", func(t *testing.T) {
		server.Need(t)
		prefix := fmt.Sprintf("main%d-", os.Getpid())
		over := func(name string) broker.Config {
			at := redis.Address{Servers: []string{server.Addr}, Mailbox: prefix + name}
			d := must(redis.Open(ctx, redis.Config{Address: at}))(t)
			t.Cleanup(func() { _ = d.Close(ctx) })
			if err := d.Create(ctx, prefix+name+".dlq", nil); err != nil {
				t.Fatal(err)
			}
			return broker.Config{Driver: d, Queue: prefix + name, Letters: broker.DefaultLetters}
		}
		answersAll(t,
			must(loop.Over[request, result](over("requests"), loop.Config{Logger: quiet}))(t),
			must(loop.Over[result, struct{}](over("answers"), loop.Config{}))(t),
			must(loop.Over[loop.DeadLetter[request], struct{}](over("requests-dlq"), loop.Config{}))(t))
	})
}

// answersAll sends a request that succeeds, and one that dies.
func answersAll(t *testing.T, requests *loop.Mailbox[request, result], answers *loop.Mailbox[result, struct{}],
	dead *loop.Mailbox[loop.DeadLetter[request], struct{}],
) {
	l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: requests, Worker: worker.Config{Concurrency: 1, Logger: quiet},
		Execute: func(_ context.Context, req request) (float64, error) {
			if req.Request == "bad" {
				return 0, nixie.Permanent(errOther)
			}
			return 42, nil
		},
	}))(t)
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- l.Run(run) }()
	for _, text := range []string{"good", "bad"} {
		id := must(requests.Send(ctx, request{Request: text, RequestID: "r-" + text}, loop.ReplyTo(answers.Name())))(t)
		m := one(t, answers, loop.Wait(loop.MaxWait))
		want := map[string]string{"good": "42 ", "bad": "0 Dead-lettered after 1 attempts: no idea"}[text]
		if got := fmt.Sprint(m.Body.Output, " ", m.Body.Error); got != want || m.RequestID() != "r-"+text || m.Body.RequestID != "r-"+text {
			t.Errorf("%s: the answer to %s is %q", text, m.RequestID(), got)
		}
		if err := m.Acknowledge(ctx); err != nil {
			t.Fatal(err)
		}
		if text == "good" {
			continue
		}
		letter := one(t, dead, loop.Wait(loop.MaxWait))
		if got := letter.Body; got.MessageID != id || got.Body.Request != "bad" || got.SourceMailbox != requests.Name() ||
			got.ReplyTo != answers.Name() || got.DeliveryCount != 1 || time.Since(got.EnqueuedAt) > time.Hour {
			t.Errorf("the dead letter of %s: %+v", id, got)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := must(answers.Receive(ctx))(t); len(got) != 0 {
		t.Errorf("there is one more answer: %+v", got[0].Body)
	}
}
