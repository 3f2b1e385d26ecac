package loop_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

type deadRequest = loop.DeadLetter[request]

// untilIdle is a worker that ends when nothing can run now.
var untilIdle = worker.Config{Concurrency: 1, Logger: quiet, Until: worker.Until{Idle: true}}

// hospital has requests that die at once unless they are cured, and notices of their deaths.
type hospital struct {
	st       store.Store
	requests *loop.Mailbox[request, result]
	dead     *loop.Mailbox[deadRequest, struct{}]
	engine   *redrive.Engine
	config   worker.Config // of all its workers
	dies     error         // of what is not cured
	cured    map[string]bool
	runs     map[string]int
}

func newHospital(t fataler, st store.Store) *hospital { return hospitalOf(t, st, "requests") }

// hospitalOf makes one with a mailbox of that name, in a store that others use too.
func hospitalOf(t fataler, st store.Store, name string) *hospital {
	return &hospital{
		st:       st,
		requests: must(loop.In[request, result](st, name, loop.Config{}))(t),
		dead:     must(loop.In[deadRequest, struct{}](st, name+"-dlq", loop.Config{}))(t),
		engine:   must(redrive.New(redrive.Config{Store: st, Force: true, MaxRedrives: -1}))(t),
		config:   untilIdle,
		dies:     errContent, cured: map[string]bool{}, runs: map[string]int{},
	}
}

// work runs what is ready.
func (h *hospital) work(t fataler) {
	t.Helper()
	l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: h.requests, Worker: h.config, DLQ: loop.DLQPolicy{Include: []policy.Matcher{policy.MatchError(errContent)}},
		Execute: func(_ context.Context, r request) (float64, error) {
			if h.runs[r.Request]++; h.cured[r.Request] {
				return 1, nil
			}
			return 0, h.dies
		},
	}))(t)
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// consume hands out the notices that are ready, and returns whose they were, in order.
func (h *hospital) consume(t fataler, handle func(deadRequest) error) (got []string) {
	t.Helper()
	k := must(loop.NewConsumer(loop.ConsumerConfig[request]{Mailbox: h.dead, Worker: h.config,
		Handle: func(_ context.Context, l deadRequest) error {
			got = append(got, l.Body.Request)
			return handle(l)
		}}))(t)
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got
}

// letter returns the letter of a request; nil if there is none.
func (h *hospital) letter(t fataler, id nixie.ID) *nixie.Letter {
	t.Helper()
	list, _, err := h.st.Letters(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// resolve applies an event to the letter of a request.
func (h *hospital) resolve(t fataler, id nixie.ID, on store.Event, statuses ...nixie.Status) {
	t.Helper()
	r := store.Resolution{Letter: h.letter(t, id).ID, Event: on, Actor: "ann", Reason: "as the test wants", Force: true, Statuses: statuses}
	if err := h.st.Resolve(ctx, []store.Resolution{r})[0]; err != nil {
		t.Fatal(err)
	}
}

func taken(deadRequest) error { return nil }

// A handler replays the letter of its notice by one call, once. What the engine refuses says why.
func TestReplay(t *testing.T) {
	h := newHospital(t, memory.New(memory.Options{}))
	id := must(h.requests.Send(ctx, request{Request: "a"}))(t)
	h.work(t)
	var kept deadRequest
	h.consume(t, func(l deadRequest) error {
		kept = l
		return l.Replay(ctx, h.engine, "replayer", "the provider is repaired")
	})
	l := h.letter(t, id)
	if l.Status != nixie.StatusRedriving || l.Message.Generation != 2 || l.Operation.IsZero() {
		t.Errorf("the letter is %s, in generation %d", l.Status, l.Message.Generation)
	}
	ops, _, err := h.st.Operations(ctx, store.OperationQuery{}, store.Page{})
	if err != nil || len(ops) != 1 || ops[0].Actor != "replayer" || ops[0].Reason != "the provider is repaired" || ops[0].Done != 1 {
		t.Errorf("operations: %+v, %v", ops, err)
	}
	for name, c := range map[string]struct {
		do   func() error
		code nixie.Code
		says string
	}{
		"again": {func() error { return kept.Replay(ctx, h.engine, "replayer", "again") }, nixie.CodeConflict,
			"redriven after generation 1"},
		"another death of it": {func() error {
			h.work(t)
			return kept.Replay(ctx, h.engine, "replayer", "again")
		}, nixie.CodeConflict, "generation 2"},
		"without force": {func() error {
			gentle := must(redrive.New(redrive.Config{Store: h.st}))(t)
			h.dies = nixie.WithReason(nixie.Permanent(errOther), nixie.ReasonValidation)
			defer func() { h.dies = errContent }()
			return h.fresh(t).Replay(ctx, gentle, "replayer", "again")
		}, nixie.CodeConflict, "force"},
		"without a reason": {func() error { return h.fresh(t).Replay(ctx, h.engine, "replayer", "") }, nixie.CodeInvalid,
			"reason is empty"},
		"without an actor": {func() error { return h.fresh(t).Replay(ctx, h.engine, "", "why") }, nixie.CodeInvalid, "actor"},
		"without an engine": {func() error { return kept.Replay(ctx, nil, "replayer", "why") }, nixie.CodeUnavailable,
			"nixie dlq redrive --from"},
		"in another store": {func() error {
			other := must(redrive.New(redrive.Config{Store: memory.New(memory.Options{})}))(t)
			return kept.Replay(ctx, other, "replayer", "why")
		}, nixie.CodeUnavailable, "nixie dlq redrive --from"},
	} {
		if err := c.do(); nixie.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, c.code, c.says)
		}
	}
}

// fresh is the dead letter of the newest death, as a handler gets it.
func (h *hospital) fresh(t fataler) (fresh *deadRequest) {
	t.Helper()
	id := must(h.requests.Send(ctx, request{Request: "fresh"}))(t)
	h.work(t)
	h.consume(t, func(l deadRequest) error {
		if l.MessageID == id {
			fresh = &l
		}
		return nil
	})
	if fresh == nil {
		t.Fatal("no handler heard of the death")
	}
	return fresh
}

// Over a broker without an office there is nothing to redrive in a store, and the error says what
// to type. With an office the letter lies there.
func TestReplayOverABroker(t *testing.T) {
	server.Need(t)
	for _, withOffice := range []bool{false, true} {
		t.Run(fmt.Sprintf("office %t", withOffice), func(t *testing.T) {
			name := fmt.Sprintf("replay%d-%t", os.Getpid(), withOffice)
			st := memory.New(memory.Options{})
			b := opened(t, name, name+".dlq", name+"-dlq")
			if withOffice {
				b.Office, b.Actor = st, "tester"
			}
			requests := must(loop.Over[request, result](b, loop.Config{Logger: quiet}))(t)
			must(requests.Send(ctx, request{Request: "bad", RequestID: "r-1"}))(t)
			l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{Requests: requests, Worker: untilIdle,
				Execute: func(context.Context, request) (float64, error) { return 0, nixie.Permanent(errOther) }}))(t)
			if err := l.Run(ctx); err != nil {
				t.Fatal(err)
			}
			engine := must(redrive.New(redrive.Config{Store: st, Force: true}))(t)
			var replayed error
			calls := 0
			k := must(loop.NewConsumer(loop.ConsumerConfig[request]{
				Mailbox: must(loop.Over[deadRequest, struct{}](opened(t, name+"-dlq", name+"-dlq.dlq"), loop.Config{}))(t),
				Worker:  untilIdle,
				Handle: func(_ context.Context, l deadRequest) error {
					calls++
					replayed = l.Replay(ctx, engine, "replayer", "repaired")
					return nil
				}}))(t)
			if err := k.Run(ctx); err != nil {
				t.Fatal(err)
			}
			switch {
			case calls != 1:
				t.Errorf("%d calls of the handler", calls)
			case withOffice && replayed != nil:
				t.Error(replayed)
			case !withOffice && (nixie.CodeOf(replayed) != nixie.CodeUnavailable ||
				!strings.Contains(replayed.Error(), "nixie dlq redrive --from")):
				t.Errorf("without an office: %v", replayed)
			}
		})
	}
}
