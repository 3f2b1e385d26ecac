package brokertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// narrow is a driver whose channels take few bytes of value and headers in a record.
type narrow struct {
	broker.Driver
	most int
}

func (n narrow) Publish(ctx context.Context, list []broker.Publication) func() []error {
	errs, out, at := make([]error, len(list)), []broker.Publication(nil), []int(nil)
	for i := range list {
		size := len(list[i].Value)
		for _, h := range list[i].Headers {
			size += len(h.Value)
		}
		if size > n.most {
			errs[i] = nixie.Errorf(nixie.CodeLimit, "channel %s takes no record so large: raise its limit", list[i].Channel)
			continue
		}
		out, at = append(out, list[i]), append(at, i)
	}
	answers := n.Driver.Publish(ctx, out)
	return func() []error {
		for k, err := range answers() {
			errs[at[k]] = err
		}
		return errs
	}
}

// dies makes a worker whose handler fails twice, with a long stack.
func dies(config broker.Config) workerPlan {
	return workerPlan{config: config, policy: policy.Config{MaxAttempts: 2}, handle: func(_ context.Context, d *nixie.Delivery) error {
		if string(d.Body) == "fine" {
			return nil
		}
		return nixie.WithEvidence(errors.New(strings.Repeat("why ", 100)), nixie.Failure{Stack: strings.Repeat("frame\n", 500)})
	}}
}

// lettersFit checks that a letter which is too large for its channel loses its history, then the
// stack, and then, if the office has that, its body. That one cannot be sent from the channel.
func lettersFit(t *testing.T, fixture Fixture) {
	sizes := map[string]int{"whole": 100_000, "history": 4_500, "stack": 2_000, "body": 1_000}
	for _, lost := range []string{"whole", "history", "stack", "body"} {
		before := len(fixture.Records(t, letters(fixture)))
		st := memory.New(memory.Options{})
		body := strings.Repeat("b", 700)
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte(lost), Value: []byte(body)})
		d := fixture.Join(t)
		s := begin(t, narrow{d, sizes[lost]}, dies(broker.Config{Office: st, Letters: broker.DefaultLetters}))
		s.until(t, "it is dead", func() bool { return s.settled[nixie.Bury] == 1 })
		s.end(t)
		if err := d.Close(limited(t)); err != nil {
			t.Error(err)
		}
		list := fixture.Records(t, letters(fixture))
		at := slices.IndexFunc(list, func(r broker.Record) bool { return string(r.Key) == lost })
		if len(list) != before+1 || at < 0 {
			t.Fatalf("%s: %d letters more", lost, len(list)-before)
		}
		l := &list[at]
		has := func(name string) bool { return header(l, name) != "" }
		first, bare, gone := lost == "whole", lost == "stack" || lost == "body", lost == "body"
		if has(broker.HeaderHistory) != first || has(broker.HeaderStack) == bare || has(broker.HeaderBodyAt) != gone ||
			!gone && string(l.Value) != body || gone && l.Value != nil || !has(broker.HeaderLetterID) {
			t.Errorf("%s: value of %d bytes, headers %.200q", lost, len(l.Value), l.Headers)
		}
		if back := broker.FromRecord(l); (back.Lacks != "") != gone {
			t.Errorf("%s: lacks %q", lost, back.Lacks)
		}
		kept, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
		if err != nil || len(kept) != 1 || string(kept[0].Message.Body) != body || len(kept[0].History) != 2 {
			t.Errorf("%s: the office has %+v, %v", lost, kept, err)
		}
	}
}

// heldUp checks that a worker ends with the name of the record and of the channel if no channel
// takes its letter. Others are done, and the next worker gets the record.
func heldUp(t *testing.T, fixture Fixture) {
	sent := append(numbered(fixture, 5), broker.Publication{Channel: fixture.Source(), Key: []byte("bad"), Value: make([]byte, 3_000)})
	for i := range 5 {
		sent[i].Value = []byte("fine")
	}
	fixture.Produce(t, sent...)
	d := fixture.Join(t)
	s := begin(t, narrow{d, 2_500}, dies(broker.Config{}))
	s.until(t, "others are done", func() bool { return s.settled[nixie.Complete] == 5 })
	err := <-s.done
	if !errors.Is(err, nixie.ErrHeldUp) || nixie.CodeOf(err) != nixie.CodeLimit ||
		!containsAll(err.Error(), fixture.Source(), letters(fixture), "raise its limit") ||
		d.Features().Ordered != containsAll(err.Error(), "offset", "partition") {
		t.Errorf("the worker ended with %v", err)
	}
	s.stop()
	if err := d.Close(limited(t)); err != nil {
		t.Error(err)
	}
	if n := len(fixture.Records(t, letters(fixture))); n != 0 {
		t.Errorf("%d letters", n)
	}
	s = begin(t, join(t, fixture), dies(broker.Config{}))
	s.until(t, "it is dead", func() bool { return s.settled[nixie.Bury] == 1 })
	s.end(t)
}

// retriesStay checks that a retry which its stage never takes waits in hand and goes on.
func retriesStay(t *testing.T, fixture Fixture) {
	d := joinStages(t, fixture, stages()...)
	for _, code := range []nixie.Code{nixie.CodeLimit, nixie.CodeInvalid} {
		fixture.Produce(t, numbered(fixture, 3)...)
		refuses := &failingDriver{Driver: d, publish: nixie.Errorf(code, "not this one")}
		s := begin(t, refuses, workerPlan{
			policy: policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond, Jitter: policy.JitterNone}},
			handle: func(_ context.Context, d *nixie.Delivery) error {
				if d.Attempts == 1 {
					return errBoom
				}
				return nil
			},
		})
		s.until(t, "all succeeded", func() bool { return s.settled[nixie.Complete] == 3 })
		s.end(t)
	}
}
