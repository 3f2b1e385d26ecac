package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// one receives the only message of a mailbox.
func one[T, R any](t *testing.T, box *loop.Mailbox[T, R], opts ...loop.ReceiveOption) *loop.Message[T, R] {
	t.Helper()
	got := must(box.Receive(ctx, opts...))(t)
	if len(got) != 1 {
		t.Fatalf("received %d messages, want 1", len(got))
	}
	return got[0]
}

// R48: any number of replies until a message is finalized, none after that.
func TestR48_Replies(t *testing.T) {
	onEach(t, func(t *testing.T, play func(func(*site))) {
		play(func(s *site) {
			answers := &kept{}
			box := s.mailbox(t, loop.Config{Resolver: &loop.Resolver{Registry: map[string]loop.Target{"answers": answers}}})
			id := must(box.Send(ctx, "question", loop.ReplyTo("answers"), nixie.WithHeader(nixie.HeaderRequestID, "r-1")))(t)
			m := one(t, box)
			if m.ID() != id || m.ReplyTo() != "answers" || m.RequestID() != "r-1" || m.Finalized() {
				t.Fatalf("message %s has reply-to %q and request-id %q", m.ID(), m.ReplyTo(), m.RequestID())
			}
			for _, text := range []string{"half", "done"} {
				must(m.Reply(ctx, text))(t)
			}
			if err := m.Acknowledge(ctx); err != nil || !m.Finalized() {
				t.Fatal(err, m.Finalized())
			}
			_, err := m.Reply(ctx, "late")
			for _, late := range []error{err, m.Acknowledge(ctx), m.Nack(ctx, 0), m.Extend(ctx, time.Second), m.Extend(ctx, 0)} {
				if !errors.Is(late, loop.ErrMessageFinalized) {
					t.Errorf("after Acknowledge: %v", late)
				}
			}
			if got := strings.Join(answers.bodies, " "); got != "r-1:half r-1:done" {
				t.Errorf("answers: %s", got)
			}
		})
	})
}

// kept keeps what it gets, with the request ID.
type kept struct{ bodies []string }

func (*kept) Name() string { return "kept" }

func (k *kept) Put(_ context.Context, body any, opts ...nixie.Option) (nixie.ID, error) {
	var m nixie.Message
	for _, set := range opts {
		set(&m)
	}
	k.bodies = append(k.bodies, m.Header(nixie.HeaderRequestID)+":"+body.(string))
	return nixie.ID{1}, nil
}

// Without a resolver replies go to a mailbox of the same store or broker. The registry comes before
// the factory.
func TestResolver(t *testing.T) {
	st := memory.New(memory.Options{})
	asked := must(loop.In[string, int](st, "questions", loop.Config{}))(t)
	answers := must(loop.In[int, string](st, "answers", loop.Config{}))(t)
	must(asked.Send(ctx, "6·7", loop.ReplyTo(answers.Name())))(t)
	m := one(t, asked)
	must(m.Reply(ctx, 42))(t)
	if got := one(t, answers); got.Body != 42 || got.RequestID() != m.ID().String() {
		t.Errorf("the answer to %s is %d, for request %s", m.ID(), got.Body, got.RequestID())
	}

	r := loop.Resolver{Registry: map[string]loop.Target{"a": asked}, Factory: func(name string) (loop.Target, error) {
		if name == "b" {
			return answers, nil
		}
		return nil, errors.New("never heard of it")
	}}
	if r.ResolveOptional("a") != asked || r.ResolveOptional("b") != answers || r.ResolveOptional("c") != nil {
		t.Error("the resolver returns another mailbox")
	}
}

// A mailbox that is answered by itself, or by the wrong type, or not at all.
func TestRepliesThatFail(t *testing.T) {
	st := memory.New(memory.Options{})
	numbers := must(loop.In[int, int](st, "numbers", loop.Config{}))(t)
	registry := map[string]loop.Target{"numbers": numbers}
	box := must(loop.In[string, string](st, "texts", loop.Config{Resolver: &loop.Resolver{Registry: registry}}))(t)
	registry["texts"] = box
	for _, c := range []struct {
		to   []nixie.Option
		want []error
	}{
		{nil, []error{loop.ErrReplyNotAvailable}},
		{[]nixie.Option{loop.ReplyTo("unknown")}, []error{loop.ErrReplyNotAvailable, loop.ErrResolution}},
		{[]nixie.Option{loop.ReplyTo("numbers")}, []error{loop.ErrSerialization}},
		{[]nixie.Option{loop.ReplyTo("texts")}, []error{nil}},
	} {
		must(box.Send(ctx, "question", c.to...))(t)
		m := one(t, box)
		_, err := m.Reply(ctx, "answer")
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("reply to %q: %v, want %v", m.ReplyTo(), err, want)
			}
		}
		if err := m.Acknowledge(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if m := one(t, box); m.Body != "answer" {
		t.Errorf("the mailbox sent itself %q", m.Body)
	}
}

// R49: an explicit zero is never a default, and makes a message visible at once.
func TestR49_ExplicitZero(t *testing.T) {
	onEach(t, func(t *testing.T, play func(func(*site))) {
		play(func(s *site) {
			box := s.mailbox(t, loop.Config{})
			must(box.Send(ctx, "body"))(t)
			first := one(t, box, loop.Visibility(0))
			second := one(t, box)
			if err := second.Extend(ctx, 0); err != nil {
				t.Fatal(err)
			}
			third := one(t, box)
			if err := third.Nack(ctx, 0); err != nil {
				t.Fatal(err)
			}
			fourth := one(t, box)
			for _, late := range []error{first.Acknowledge(ctx), second.Nack(ctx, 0), second.Extend(ctx, time.Minute)} {
				if !errors.Is(late, loop.ErrReceiptHandleExpired) {
					t.Errorf("an older handle: %v", late)
				}
			}
			if n := fourth.DeliveryCount(); n != 4 {
				t.Errorf("delivery count is %d, want 4", n)
			}
			if err := fourth.Acknowledge(ctx); err != nil {
				t.Error(err)
			}
		})
	})
}

// Every option with values that are zero, negative or too large.
func TestBadInput(t *testing.T) {
	st := memory.New(memory.Options{})
	box := must(loop.In[string, string](st, "orders", loop.Config{}))(t)
	must(box.Send(ctx, "body"))(t)
	m := one(t, box)
	receive := func(o loop.ReceiveOption) func() error {
		return func() error { _, err := box.Receive(ctx, o); return err }
	}
	send := func(opts ...nixie.Option) func() error {
		return func() error { _, err := box.Send(ctx, "body", opts...); return err }
	}
	in := func(name string, c loop.Config) func() error {
		return func() error { _, err := loop.In[string, string](st, name, c); return err }
	}
	over := func(b broker.Config) func() error {
		return func() error { _, err := loop.Over[string, string](b, loop.Config{}); return err }
	}
	driver := brokertest.NewMailbox().Join(t)
	channel := must(loop.Over[string, string](broker.Config{Driver: driver, Queue: "orders"}, loop.Config{}))(t)
	for name, do := range map[string]func() error{
		"max 0":                 receive(loop.Max(0)),
		"max -1":                receive(loop.Max(-1)),
		"max 11":                receive(loop.Max(11)),
		"wait -1":               receive(loop.Wait(-1)),
		"wait 21 s":             receive(loop.Wait(21 * time.Second)),
		"visibility -1":         receive(loop.Visibility(-1)),
		"visibility 1 ms":       receive(loop.Visibility(time.Millisecond)),
		"visibility over 12 h":  receive(loop.Visibility(12*time.Hour + 1)),
		"nack -1":               func() error { return m.Nack(ctx, -1) },
		"nack over 12 h":        func() error { return m.Nack(ctx, 12*time.Hour+1) },
		"extend -1":             func() error { return m.Extend(ctx, -1) },
		"extend 1 ms":           func() error { return m.Extend(ctx, time.Millisecond) },
		"extend over 12 h":      func() error { return m.Extend(ctx, 12*time.Hour+1) },
		"empty reply-to":        send(loop.ReplyTo("")),
		"long reply-to":         send(loop.ReplyTo(strings.Repeat("x", 256))),
		"priority 5":            send(nixie.Priority(5)),
		"delay -1":              send(nixie.Delay(-1)),
		"no name":               in("", loop.Config{}),
		"long name":             in(strings.Repeat("x", 256), loop.Config{}),
		"capacity -1":           in("orders", loop.Config{Capacity: -1}),
		"no store":              func() error { _, err := loop.In[string, string](nil, "orders", loop.Config{}); return err },
		"no driver":             over(broker.Config{Queue: "orders"}),
		"no channel":            over(broker.Config{Driver: driver}),
		"priority on a channel": func() error { _, err := channel.Send(ctx, "body", nixie.Priority(1)); return err },
	} {
		if err := do(); !errors.Is(err, loop.ErrInvalidParameter) || nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: %v, want an invalid parameter", name, err)
		}
	}
	if err := m.Acknowledge(ctx); err != nil {
		t.Errorf("the message that was used: %v", err)
	}
	if _, err := channel.ApproximateCount(ctx); !errors.Is(err, loop.ErrConnection) {
		t.Errorf("a broker that cannot count: %v", err)
	}
}

// A body that cannot be decoded becomes a letter with its bytes, and the next message is received.
func TestUndecodable(t *testing.T) {
	st := memory.New(memory.Options{})
	box := must(loop.In[int, int](st, "numbers", loop.Config{Logger: slog.New(slog.DiscardHandler)}))(t)
	raw := []byte("{not json\x00\xff")
	must(st.Enqueue(ctx, nixie.Message{Queue: "numbers", Body: raw}))(t)
	must(box.Send(ctx, 7))(t)
	got := must(box.Receive(ctx, loop.Max(10)))(t)
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{Whole: true})
	if err != nil || len(got) != 1 || got[0].Body != 7 || len(letters) != 1 {
		t.Fatalf("%d messages and %d letters, %v", len(got), len(letters), err)
	}
	if l := &letters[0]; string(l.Message.Body) != string(raw) || l.Reason != nixie.ReasonSerialization {
		t.Errorf("the letter has reason %s and body %q", l.Reason, l.Message.Body)
	}
	unencodable := must(loop.In[func(), int](st, "functions", loop.Config{}))(t)
	if _, err := unencodable.Send(ctx, func() {}); !errors.Is(err, loop.ErrSerialization) {
		t.Errorf("a function as body: %v", err)
	}
}

func TestCapacityAndPurge(t *testing.T) {
	onEach(t, func(t *testing.T, play func(func(*site))) {
		play(func(s *site) {
			capacity := 3
			if s.store == nil {
				capacity = 0 // the broker in memory cannot count
			}
			box := s.mailbox(t, loop.Config{Capacity: capacity})
			for range 3 {
				must(box.Send(ctx, "body"))(t)
			}
			m := one(t, box)
			if capacity > 0 {
				if _, err := box.Send(ctx, "body"); !errors.Is(err, loop.ErrMailboxFull) || nixie.CodeOf(err) != nixie.CodeLimit {
					t.Errorf("the fourth message of three: %v", err)
				}
			}
			if n := must(box.Purge(ctx))(t); n != 2 {
				t.Errorf("purged %d, want the two that wait", n)
			}
			if got := must(box.Receive(ctx))(t); len(got) != 0 {
				t.Errorf("received %d messages after the purge", len(got))
			}
			if err := m.Acknowledge(ctx); err != nil {
				t.Errorf("a message that was received before the purge: %v", err)
			}
		})
	})
}

// Receive waits for a message, and returns when one comes, when the time is over and when the
// mailbox is closed.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timed := brokertest.NewTimed()
		for _, s := range []*site{
			{store: memory.New(memory.Options{}), name: "orders", clock: time.Now},
			{driver: timed.Join(t), name: timed.Source(), clock: time.Now},
		} {
			box, begun := s.mailbox(t, loop.Config{}), time.Now()
			if got := must(box.Receive(ctx, loop.Wait(20*time.Second)))(t); len(got) != 0 || time.Since(begun) < 20*time.Second {
				t.Errorf("received %d messages after %s", len(got), time.Since(begun))
			}
			begun = time.Now()
			time.AfterFunc(time.Second, func() { must(box.Send(ctx, "body"))(t) })
			if one(t, box, loop.Wait(20*time.Second), loop.Visibility(5*time.Second)); time.Since(begun) > 2*time.Second {
				t.Errorf("received after %s", time.Since(begun))
			}
			begun = time.Now() // its visibility ends while the next call waits
			if one(t, box, loop.Wait(20*time.Second)); time.Since(begun) > 6*time.Second {
				t.Errorf("it came again after %s", time.Since(begun))
			}
			time.AfterFunc(time.Second, box.Close)
			begun = time.Now()
			if got := must(box.Receive(ctx, loop.Wait(20*time.Second)))(t); len(got) != 0 || time.Since(begun) > 2*time.Second {
				t.Errorf("received %d messages after %s, although it was closed", len(got), time.Since(begun))
			}
			if _, err := box.Send(ctx, "late"); !box.Closed() || !errors.Is(err, loop.ErrConnection) || !errors.Is(err, nixie.ErrClosed) {
				t.Errorf("sent after Close: %v", err)
			}
		}
	})
}
