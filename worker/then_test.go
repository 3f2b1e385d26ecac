package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// to makes a message to a queue that follows a delivery.
func to(queue string, d *nixie.Delivery) nixie.Message {
	return nixie.Message{Queue: queue, Key: "after " + d.Key, Body: []byte("x")}
}

// replies adds n messages to each settlement of a policy, to the queue "answers", and then one to
// each of the other queues.
func replies(p *policy.Policy, n int, others ...string) deciderFunc {
	return func(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
		st := p.Decide(d, f, now)
		for range n {
			st.Then = append(st.Then, to("answers", d))
		}
		for _, queue := range others {
			st.Then = append(st.Then, to(queue, d))
		}
		return st
	}
}

// follow is a handler that lets n messages to a queue follow its delivery.
func follow(queue string, n int, err error) nixie.Handler {
	return handler(func(_ context.Context, d *nixie.Delivery) error {
		for range n {
			if err := d.Then(to(queue, d)); err != nil {
				return err
			}
		}
		return err
	})
}

func TestThen(t *testing.T) {
	twice, err := policy.New(policy.Config{MaxAttempts: 2, Backoff: policy.Backoff{Base: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		handler nixie.Handler
		decider policy.Decider
		closed  string
		want    map[string]int // messages by queue and state
		reason  string         // part of the last failure
		trouble string
	}{
		{name: "success", handler: follow("next", 2, nil), want: map[string]int{"q succeeded": 1, "next queued": 2}},
		{name: "failure", handler: follow("next", 2, errBoom), want: map[string]int{"q dead": 1}, reason: "boom"},
		{name: "too many", handler: follow("next", nixie.MaxThen+1, nil), want: map[string]int{"q dead": 1},
			reason: "101 messages follow the settlement, the limit is 100"},
		{name: "closed queue", handler: follow("next", 1, nil), closed: "next", want: map[string]int{"q dead": 1},
			reason: "queue next is closed"},
		{name: "of the decider", handler: follow("next", 1, nil), decider: replies(twice, 1),
			want: map[string]int{"q succeeded": 1, "next queued": 1, "answers queued": 1}},
		{name: "of the decider, at each failure", handler: follow("next", 1, errBoom), decider: replies(twice, 1),
			want: map[string]int{"q dead": 1, "answers queued": 2}, reason: "boom"},
		{name: "too many together", handler: follow("next", 60, nil), decider: replies(twice, 41),
			want: map[string]int{"q dead": 1, "answers queued": 41}, reason: "101 messages follow"},
		{name: "of the decider, to a closed queue", handler: follow("next", 0, errBoom), decider: replies(twice, 1), closed: "answers",
			want: map[string]int{"q dead": 1}, reason: "boom", trouble: "without the 1 messages that were to follow to answers"},
		{name: "of the decider, one to a closed queue", handler: follow("next", 0, errBoom), closed: "answers",
			decider: replies(twice, 1, "open"), want: map[string]int{"q dead": 1, "open queued": 2}, trouble: "to follow to answers"},
		{name: "of the decider, the last to a closed queue", handler: follow("next", 0, errBoom), closed: "open",
			decider: replies(twice, 1, "open"), want: map[string]int{"q dead": 1, "answers queued": 2}, trouble: "to follow to open"},
		{name: "of the decider, one to a queue that is closed in favour of another", handler: follow("next", 0, errBoom),
			decider: replies(twice, 1, "answers-2"), closed: "answers",
			want: map[string]int{"q dead": 1, "answers-2 queued": 2}, trouble: "to follow to answers:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New(memory.Options{})
				fill(t, st, "a")
				if c.closed != "" {
					set := nixie.QueueSettings{Closed: true, ClosedNote: "use answers-2"}
					if err := store.Configure(t.Context(), st, c.closed, set, "ann", "test"); err != nil {
						t.Fatal(err)
					}
				}
				seen := &troubles{}
				conf := worker.Config{Source: store.NewSource(st, "q"), Handler: c.handler, Policy: twice, Observer: seen.observer()}
				if c.decider != nil {
					conf.Policy, conf.Decider = nil, c.decider
				}
				g := start(t, conf)
				time.Sleep(time.Minute)
				g.end()
				list, _, err := st.Messages(t.Context(), nixie.Filter{}, store.Page{Limit: 200})
				if err != nil {
					t.Fatal(err)
				}
				got, reason := map[string]int{}, ""
				for _, m := range list {
					got[m.Queue+" "+string(m.State)]++
					reason += m.LastFailure
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) || !strings.Contains(reason, c.reason) {
					t.Errorf("%v, %q, want %v, %q", got, reason, c.want, c.reason)
				}
				trouble := strings.TrimPrefix(fmt.Sprint(errors.Join(seen.errs...)), "<nil>")
				if !strings.Contains(trouble, c.trouble) || c.trouble == "" && trouble != "" {
					t.Errorf("trouble is %q, want %q", trouble, c.trouble)
				}
			})
		})
	}
}

// What follows many settlements may be more than one call takes.
func TestThenOfManyIsSplit(t *testing.T) {
	st := memory.New(memory.Options{})
	keys := strings.Fields("a b c d e f g h i j")
	fill(t, st, keys...)
	large := make([]byte, nixie.MaxThenBytes)
	together := make(chan struct{})
	started := make(chan struct{}, len(keys))
	var refused atomic.Int64
	observer := &nixie.Observer{Settled: func(_ string, _ []nixie.Settlement, errs []error) {
		if errors.Join(errs...) != nil {
			refused.Add(1)
		}
	}}
	g := start(t, worker.Config{
		Source: store.NewSource(st, "q"), Concurrency: len(keys), Observer: observer,
		Handler: handler(func(_ context.Context, d *nixie.Delivery) error {
			started <- struct{}{}
			<-together
			return d.Then(nixie.Message{Queue: "next", Body: large})
		}),
	})
	for range keys {
		<-started
	}
	close(together)
	for done := 0; done < len(keys); {
		ds, err := store.NewSource(st, "next").Receive(t.Context(), nixie.Want{Max: 10, Wait: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		done += len(ds)
	}
	g.end()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d calls were refused", n)
	}
}

// nowhere is a source that has no channel for what follows.
type nowhere struct{ nixie.Source }

func (s nowhere) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	for i := range sts {
		if len(sts[i].Then) > 0 {
			return []error{nixie.Errorf(nixie.CodeNotFound, "there is no channel %s", sts[i].Then[0].Queue)}
		}
	}
	return s.Source.Settle(ctx, sts)
}

func TestThenToAMissingChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		fill(t, st, "a")
		g := start(t, worker.Config{
			Source:  nowhere{store.NewSource(st, "q")},
			Handler: handler(func(_ context.Context, d *nixie.Delivery) error { return d.Then(to("missing", d)) }),
		})
		time.Sleep(time.Second)
		g.end()
		list, _, err := st.Messages(t.Context(), nixie.Filter{}, store.Page{})
		if err != nil || len(list) != 1 || !strings.Contains(list[0].LastFailure, "there is no channel missing") {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestDeskThen(t *testing.T) {
	clock := &hands{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	st := memory.New(memory.Options{Clock: clock.Now})
	fill(t, st, "good", "refused")
	if err := store.Configure(t.Context(), st, "closed", nixie.QueueSettings{Closed: true}, "ann", "test"); err != nil {
		t.Fatal(err)
	}
	desk := newDesk(t, store.NewSource(st, "q"), clock, &troubles{})
	ds := claim(t, desk, 2)
	if err := errors.Join(ds[0].Then(to("next", ds[0])), ds[1].Then(to("next", ds[1]), to("closed", ds[1]))); err != nil {
		t.Fatal(err)
	}
	var verbs []nixie.Verb
	for _, d := range ds {
		s, err := desk.Done(t.Context(), d, nil, clock.Now())
		if err != nil {
			t.Error(err)
		}
		verbs = append(verbs, s.Verb)
	}
	if !slices.Equal(verbs, []nixie.Verb{nixie.Complete, nixie.Retry}) {
		t.Errorf("settled by %v", verbs)
	}
	if next, err := store.NewSource(st, "next").Receive(t.Context(), nixie.Want{Max: 10}); len(next) != 1 || err != nil {
		t.Errorf("%d messages follow, %v", len(next), err)
	}
}
