package loop_test

import (
	"context"
	"errors"
	"fmt"
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

var all = store.QueueQuery{}

type deadOrder = loop.DeadLetter[string]

// died is the notice of an order that died.
func died(body string) deadOrder {
	return deadOrder{MessageID: nixie.ID{1}, Body: body, SourceMailbox: "orders", DeadLetteredAt: time.Unix(1, 0)}
}

// consumed runs a consumer over dead letters of these bodies for 25 minutes. It returns what its
// handler got, with the tens of minutes, and the store.
func consumed(t *testing.T, c loop.ConsumerConfig[string], bodies ...string) (got []string, st *memory.Store) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st = memory.New(memory.Options{})
		begun := time.Now()
		c.Mailbox = must(loop.In[deadOrder, struct{}](st, "orders-dlq", loop.Config{}))(t)
		c.Worker.Logger, c.RetryAfter = quiet, 10*time.Minute
		handle := c.Handle
		c.Handle = func(ctx context.Context, l deadOrder) error {
			got = append(got, fmt.Sprintf("%d:%s", time.Since(begun)/(10*time.Minute), l.Body))
			return handle(ctx, l)
		}
		for _, body := range bodies {
			must(c.Mailbox.Send(ctx, died(body)))(t)
		}
		must(st.Enqueue(ctx, nixie.Message{Queue: "orders-dlq", Body: []byte("no dead letter")}))(t)
		run, stop := context.WithTimeout(ctx, 25*time.Minute)
		defer stop()
		if err := must(loop.NewConsumer(c))(t).Run(run); err != nil {
			t.Fatal(err)
		}
	})
	return got, st
}

// A dead letter whose handler fails comes again after a while, for ever, and does not die itself.
// What is none becomes a letter.
func TestConsumer(t *testing.T) {
	failed := 0
	handle := func(_ context.Context, l deadOrder) error {
		switch {
		case l.Body == "never":
			panic("never")
		case l.Body == "later" && failed < 2:
			failed++
			return nixie.Permanent(errOther)
		case l.Body == "drop":
			return nixie.Verdict(nixie.Discard, errOther)
		}
		return nil
	}
	got, st := consumed(t, loop.ConsumerConfig[string]{Handle: handle}, "now", "later", "never", "drop")
	if text := strings.Join(got, " "); text != "0:now 0:later 0:never 0:drop 1:later 1:never 2:later 2:never" {
		t.Errorf("handled %s", text)
	}
	queues := must(st.Queues(ctx, all))(t)
	if q := queues[0]; q.Dead != 1 || q.Succeeded != 2 || q.Discarded != 1 || q.Unfinished() != 1 {
		t.Errorf("the mailbox has %+v", q)
	}

	got, st = consumed(t, loop.ConsumerConfig[string]{Handle: handle, OnFailure: nixie.Discard}, "never", "now")
	if q := must(st.Queues(ctx, all))(t)[0]; strings.Join(got, " ") != "0:never 0:now" || q.Discarded != 1 || q.Dead != 1 {
		t.Errorf("with discard: handled %v, the mailbox has %+v", got, q)
	}

	got, st = consumed(t, loop.ConsumerConfig[string]{Handle: handle, MaxLetters: 2}, "now", "now", "now")
	if q := must(st.Queues(ctx, all))(t)[0]; len(got) != 2 || q.Unfinished() != 2 {
		t.Errorf("with at most two: handled %v, the mailbox has %+v", got, q)
	}
}

// R52: a loop that is to end when it is idle ends without an error when only future items remain:
// what was put off when it was sent, and what waits for a retry.
func TestR52_LoopsEndWhenOnlyFutureItemsRemain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := worker.Config{Concurrency: 1, Logger: quiet, Until: worker.Until{Idle: true}}
		st := memory.New(memory.Options{})
		requests := must(loop.In[request, result](st, "requests", loop.Config{}))(t)
		dead := must(loop.In[deadOrder, struct{}](st, "orders-dlq", loop.Config{}))(t)
		for _, text := range []string{"good", "fails"} {
			must(requests.Send(ctx, request{Request: text}))(t)
			must(dead.Send(ctx, died(text)))(t)
		}
		must(requests.Send(ctx, request{Request: "later"}, nixie.Delay(time.Hour)))(t)
		runs := 0
		run := func(text string) error {
			runs++
			if text == "fails" {
				return errOther
			}
			return nil
		}
		l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{Requests: requests, Worker: idle,
			Execute: func(_ context.Context, r request) (float64, error) { return 1, run(r.Request) }}))(t)
		k := must(loop.NewConsumer(loop.ConsumerConfig[string]{Mailbox: dead, Worker: idle,
			Handle: func(_ context.Context, l deadOrder) error { return run(l.Body) }}))(t)
		begun := time.Now()
		if err := errors.Join(l.Run(ctx), k.Run(ctx)); err != nil || time.Since(begun) > 5*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		left := []int{must(requests.ApproximateCount(ctx))(t), must(dead.ApproximateCount(ctx))(t)}
		if runs != 4 || left[0] != 2 || left[1] != 1 {
			t.Errorf("%d runs, %v remain", runs, left)
		}
	})
}

// Shutdown ends a loop and waits for its handler. One that does not end in time is told.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := must(loop.In[deadOrder, struct{}](memory.New(memory.Options{}), "orders-dlq", loop.Config{}))(t)
		must(box.Send(ctx, died("")))(t)
		handled := false
		c := loop.ConsumerConfig[string]{Mailbox: box, Worker: worker.Config{Logger: quiet},
			Handle: func(context.Context, deadOrder) error { pass(20 * time.Second); handled = true; return nil }}
		k := must(loop.NewConsumer(c))(t)
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		pass(time.Second)
		short, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		if err := k.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) || handled {
			t.Errorf("while a handler runs: %v", err)
		}
		if err := errors.Join(k.Shutdown(ctx), <-done); err != nil || !handled {
			t.Errorf("after it: %v", err)
		}
		if err := k.Run(ctx); !errors.Is(err, loop.ErrInvalidParameter) {
			t.Errorf("a second run: %v", err)
		}
		early := must(loop.NewConsumer(c))(t)
		if err := errors.Join(early.Shutdown(ctx), early.Run(ctx)); err != nil {
			t.Errorf("before it runs: %v", err)
		}
	})
}

// A notice whose consumers vanish again and again stays, too.
func TestConsumerThatVanishes(t *testing.T) {
	box := must(loop.In[deadOrder, struct{}](memory.New(memory.Options{}), "orders-dlq", loop.Config{}))(t)
	k := must(loop.NewConsumer(loop.ConsumerConfig[string]{Mailbox: box, Handle: func(context.Context, deadOrder) error { return nil },
		OnFailure: nixie.Discard}))(t)
	d := &nixie.Delivery{Message: nixie.Message{Deliveries: 200, Crashes: 100}, Abandoned: true, AbandonedAlone: true}
	st := k.Decide(d, must(policy.New(policy.Config{}))(t).Abandoned(d, time.Now()), time.Now())
	if st.Verb != nixie.Retry || st.Delay != time.Hour {
		t.Errorf("after a hundred crashes: %s after %s", st.Verb, st.Delay)
	}
}

func TestBadConsumers(t *testing.T) {
	box := must(loop.In[deadOrder, struct{}](memory.New(memory.Options{}), "orders-dlq", loop.Config{}))(t)
	handle := func(context.Context, deadOrder) error { return nil }
	for name, c := range map[string]loop.ConsumerConfig[string]{
		"no mailbox":     {Handle: handle},
		"no handler":     {Mailbox: box},
		"its own policy": {Mailbox: box, Handle: handle, Worker: worker.Config{Policy: &policy.Policy{}}},
		"bury":           {Mailbox: box, Handle: handle, OnFailure: nixie.Bury},
		"after -1":       {Mailbox: box, Handle: handle, RetryAfter: -1},
		"after a day":    {Mailbox: box, Handle: handle, RetryAfter: 24 * time.Hour},
		"letters -1":     {Mailbox: box, Handle: handle, MaxLetters: -1},
		"lease 1":        {Mailbox: box, Handle: handle, Worker: worker.Config{Lease: 1}},
		"concurrency -1": {Mailbox: box, Handle: handle, Worker: worker.Config{Concurrency: -1}},
		"receives -1":    {Mailbox: box, Handle: handle, Worker: worker.Config{Until: worker.Until{Receives: -1}}},
		"grace -2":       {Mailbox: box, Handle: handle, Worker: worker.Config{Drain: -2}},
	} {
		if _, err := loop.NewConsumer(c); !errors.Is(err, loop.ErrInvalidParameter) {
			t.Errorf("%s: %v, want an invalid parameter", name, err)
		}
	}
}
