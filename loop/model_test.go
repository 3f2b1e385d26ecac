package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
)

var ctx = context.Background()

// R47: the invariants of mailboxes, by a model with random calls. A message is in one of three
// states; only its newest handle works; its count grows; its body stays; it is seen again when its
// visibility ends; and no message is lost.
func TestR47_MailboxInvariants(t *testing.T) {
	endless := must(policy.New(policy.Config{MaxAttempts: -1, MaxDeliveries: policy.MaxCount, MaxCrashes: policy.MaxCount}))(t)
	test := func(t *testing.T, play func(func(*site))) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			play(func(s *site) {
				m := &model{site: s, box: s.mailbox(t, loop.Config{Policy: endless}), all: map[nixie.ID]*modelled{}, seen: map[int64]bool{}}
				defer m.box.Close()
				t.Repeat(map[string]func(*rapid.T){
					"send":    m.send,
					"receive": m.receive,
					"settle":  m.settle,
					"extend":  m.extend,
					"wait":    func(t *rapid.T) { m.wait(m.seconds(t)) },
					"":        m.check,
				})
				m.drain(t)
			})
		})
	}
	onEach(t, test)
	onPostgres(t, test)
	onRedis(t, test)
}

// model knows what is in a mailbox.
type model struct {
	site    *site
	box     *loop.Mailbox[string, string]
	now     time.Duration
	sent    int
	all     map[nixie.ID]*modelled
	handles []*handle
	seen    map[int64]bool // receipts
}

// modelled is a message that is not acknowledged.
type modelled struct {
	body    string
	count   int
	visible time.Duration // from then on
	newest  *handle       // of the last delivery
}

// handle is a delivery that the test has had.
type handle struct {
	*loop.Message[string, string]
	of    *modelled
	ended bool // acknowledged or given back
}

func (m *model) visible() (n int) {
	for _, of := range m.all {
		if of.visible <= m.now {
			n++
		}
	}
	return n
}

// works reports whether a handle is the newest of its message and not over.
func (m *model) works(h *handle) bool {
	return h.of.newest == h && m.all[h.ID()] == h.of && h.of.visible > m.now
}

// seconds is a visibility, or a wait. Where no wait is possible it is 0, or longer than the test.
func (m *model) seconds(t *rapid.T) time.Duration {
	if m.site.advance == nil {
		return time.Duration(rapid.IntRange(0, 1).Draw(t, "hours")) * time.Hour
	}
	return time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second
}

func (m *model) wait(d time.Duration) {
	if m.site.advance == nil {
		return
	}
	d += time.Millisecond // never exactly to the end of a visibility
	m.now += d
	m.site.advance(d)
}

func (m *model) send(t *rapid.T) {
	m.sent++
	body := fmt.Sprintf("body %d", m.sent)
	id := must(m.box.Send(ctx, body))(t)
	if id.IsZero() || m.all[id] != nil {
		t.Fatalf("the ID %s is none, or not new", id)
	}
	m.all[id] = &modelled{body: body, visible: m.now}
}

func (m *model) receive(t *rapid.T) {
	most := rapid.IntRange(1, loop.MaxReceive).Draw(t, "max")
	hidden := m.seconds(t)
	visible := m.visible()
	got := must(m.box.Receive(ctx, loop.Max(most), loop.Visibility(hidden)))(t)
	if len(got) > min(most, visible) || m.site.store != nil && visible > 0 && len(got) == 0 {
		t.Fatalf("%d of %d visible messages were received, at most %d were wanted", len(got), visible, most)
	}
	for _, g := range got {
		m.take(t, g, hidden)
	}
}

func (m *model) take(t *rapid.T, g *loop.Message[string, string], hidden time.Duration) {
	of := m.all[g.ID()]
	switch {
	case of == nil || of.visible > m.now:
		t.Fatalf("message %s was received, and it is not visible", g.ID())
	case g.Body != of.body:
		t.Fatalf("message %s has the body %q, it was sent with %q", g.ID(), g.Body, of.body)
	case of.count == 0 && g.DeliveryCount() != 1, g.DeliveryCount() <= of.count:
		t.Fatalf("message %s has the delivery count %d after %d", g.ID(), g.DeliveryCount(), of.count)
	case m.seen[g.Receipt()] && m.site.store == nil, of.newest != nil && of.newest.Receipt() == g.Receipt():
		t.Fatalf("message %s has the receipt %d again", g.ID(), g.Receipt())
	}
	m.seen[g.Receipt()] = true
	of.count, of.visible = g.DeliveryCount(), m.now+hidden
	of.newest = &handle{Message: g, of: of}
	m.handles = append(m.handles, of.newest)
}

// settle acknowledges or gives back by any handle that there ever was.
func (m *model) settle(t *rapid.T) {
	if len(m.handles) == 0 {
		t.Skip("no handle")
	}
	h := rapid.SampledFrom(m.handles).Draw(t, "handle")
	hidden := m.seconds(t)
	if m.site.advance == nil {
		hidden = 0 // it would never come back
	}
	acknowledge := rapid.Bool().Draw(t, "acknowledge")
	works, ended := m.works(h), h.ended
	do := func() error { return h.Nack(ctx, hidden) }
	if acknowledge {
		do = func() error { return h.Acknowledge(ctx) }
	}
	err := do()
	m.judge(t, h, err, works, ended)
	if err != nil {
		return
	}
	h.ended = true
	h.of.visible, h.of.newest = m.now+hidden, nil
	if acknowledge {
		delete(m.all, h.ID())
	}
}

func (m *model) extend(t *rapid.T) {
	if len(m.handles) == 0 {
		t.Skip("no handle")
	}
	h := rapid.SampledFrom(m.handles).Draw(t, "handle")
	hidden := m.seconds(t)
	works := m.works(h)
	err := h.Extend(ctx, hidden)
	m.judge(t, h, err, works, h.ended)
	if err == nil {
		h.of.visible = m.now + hidden
	}
}

// judge compares the answer of a handle with what it has to be.
func (m *model) judge(t *rapid.T, h *handle, err error, works, ended bool) {
	want := error(nil)
	switch {
	case ended:
		want = loop.ErrMessageFinalized
	case !works:
		want = loop.ErrReceiptHandleExpired
	}
	if !errors.Is(err, want) {
		t.Fatalf("handle %d of message %s: %v, want %v", h.Receipt(), h.ID(), err, want)
	}
}

// check compares the count.
func (m *model) check(t *rapid.T) {
	if m.site.store == nil {
		return
	}
	if n := must(m.box.ApproximateCount(ctx))(t); n != len(m.all) {
		t.Fatalf("the mailbox counts %d messages, it has %d", n, len(m.all))
	}
}

// drain receives and acknowledges all that is left.
func (m *model) drain(t *rapid.T) {
	for _, h := range m.handles {
		if m.site.advance == nil && m.works(h) {
			m.judge(t, h, h.Extend(ctx, 0), true, false)
			h.of.visible = m.now
		}
	}
	for looks := 0; len(m.all) > 0; looks++ {
		if looks > 100 {
			t.Fatalf("%d messages do not come any more", len(m.all))
		}
		m.wait(time.Minute)
		for _, g := range must(m.box.Receive(ctx, loop.Max(loop.MaxReceive)))(t) {
			m.take(t, g, loop.DefaultVisibility)
			if err := g.Acknowledge(ctx); err != nil {
				t.Fatal(err)
			}
			delete(m.all, g.ID())
		}
	}
}
