// Package nixietest, for programs, tests handlers: it works until nothing is left to do, retries
// included, in virtual time.
//
//	func TestAnInvoiceWithoutCustomerDies(t *testing.T) {
//		h := nixie.Routes(sendInvoice.Handle(send))
//		got := nixietest.Run(t, h, nixietest.Message(t, sendInvoice, Invoice{Number: 7}))
//		if l := got[0].Letter; l == nil || l.Message.LastFailure != "the invoice has no customer" {
//			t.Errorf("it did not die as it should: %+v", got[0])
//		}
//	}
//
// The handler runs in a [worker.Worker] over a store in memory, one message at a time: with its
// routes, limits and policy as in production, without breakers. No file, server or other process
// is used. All functions fail the test with a text, and are for one goroutine.
package nixietest

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// DefaultQueue is the queue of a message without one.
const DefaultQueue = "test"

// mostRuns bounds how often Run begins anew for messages that wait: a policy without an end would
// never let it return.
const mostRuns = 1000

// Result tells what became of one message.
type Result struct {
	nixie.Message // as it ended: State, Attempts, Steps, LastFailure

	Failures []nixie.Failure // of all attempts, oldest first
	Letter   *nixie.Letter   // nil unless it died
	Enqueued []nixie.Message // what its handler enqueued with [nixie.Delivery.Then]; not worked on
}

// Message returns the message that [nixie.Type.Enqueue] would send. Without an option it goes to
// [DefaultQueue].
func Message[T any](t testing.TB, of nixie.Type[T], body T, options ...nixie.Option) nixie.Message {
	t.Helper()
	m, err := of.Message(body, options...)
	if err != nil {
		t.Fatalf("nixietest: %v", err)
	}
	return m
}

// Run works on the jobs with a handler until each has ended, and returns what became of each, in
// their order. Where one waits for a retry, the clock is put forward: only what the handler itself
// waits for takes time. A timeout is of the machine's time.
func Run(t testing.TB, h nixie.Handler, jobs ...nixie.Message) []Result {
	t.Helper()
	r := run{clock: time.Now(), then: map[nixie.ID][]nixie.Message{}}
	r.st = memory.New(memory.Options{Clock: r.now})
	queues := map[string]bool{}
	var names []string
	for i := range jobs {
		if jobs[i].Queue == "" {
			jobs[i].Queue = DefaultQueue
		}
		if q := jobs[i].Queue; !queues[q] {
			queues[q] = true
			names = append(names, q)
		}
	}
	receipts, err := r.st.Enqueue(t.Context(), jobs...)
	if err != nil {
		t.Fatalf("nixietest: %v", err)
	}
	for range mostRuns {
		w, err := worker.New(worker.Config{
			Source: &source{store.NewSource(r.st, names...), &r}, Handler: h, Concurrency: 1, Clock: r.now,
			Breaker: policy.BreakerRules{Failures: -1}, Until: worker.Until{Idle: true},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			err = w.Run(t.Context())
		}
		if err != nil {
			t.Fatalf("nixietest: %v", err)
		}
		results, due := r.results(t, receipts)
		if due.IsZero() {
			return results
		}
		r.clock = due
	}
	t.Fatalf("nixietest: after %d waits a message has not ended: give its policy a limit of attempts or of age", mostRuns)
	return nil
}

// RequireEnqueued returns the body of the one message of a type among those that were enqueued. It
// fails the test if there is none, or more than one.
func RequireEnqueued[T any](t testing.TB, enqueued []nixie.Message, of nixie.Type[T]) T {
	t.Helper()
	var body T
	n := 0
	for i := range enqueued {
		if enqueued[i].Type != of.Name() {
			continue
		}
		n++
		if err := json.Unmarshal(enqueued[i].Body, &body); err != nil {
			t.Fatalf("nixietest: message of type %s: %v", of.Name(), err)
		}
	}
	if n != 1 {
		t.Fatalf("nixietest: %d messages of type %s were enqueued, want 1; all: %s", n, of.Name(), types(enqueued))
	}
	return body
}

// types lists the types of messages.
func types(messages []nixie.Message) string {
	var all []string
	for i := range messages {
		all = append(all, messages[i].Type)
	}
	text, _ := json.Marshal(all) // strings can be encoded
	return string(text)
}

// Recorder is a [nixie.Enqueuer] that keeps what a handler enqueues by itself.
type Recorder struct{ Enqueued []nixie.Message }

// Enqueue implements [nixie.Enqueuer]. It refuses what a store refuses.
func (r *Recorder) Enqueue(_ context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	receipts, err := memory.New(memory.Options{}).Enqueue(context.Background(), messages...)
	if err == nil {
		r.Enqueued = append(r.Enqueued, messages...)
	}
	return receipts, err
}

// run is one call of Run.
type run struct {
	clock time.Time // moves only while no worker runs
	st    *memory.Store
	then  map[nixie.ID][]nixie.Message
}

func (r *run) now() time.Time { return r.clock }

// results reads what became of the messages, and when the first of those that wait is due; zero if
// none waits.
func (r *run) results(t testing.TB, receipts []nixie.Receipt) (results []Result, due time.Time) {
	t.Helper()
	for _, receipt := range receipts {
		records, _, err := r.st.Messages(t.Context(), nixie.Filter{IDs: []nixie.ID{receipt.ID}}, store.Page{Whole: true})
		if err != nil || len(records) != 1 {
			t.Fatalf("nixietest: message %s: %d found, %v", receipt.ID, len(records), err)
		}
		m := &records[0]
		result := Result{Message: m.Message, Failures: m.History, Enqueued: r.then[m.ID]}
		switch m.State {
		case nixie.Queued:
			if due.IsZero() || m.NotBefore.Before(due) {
				due = m.NotBefore
			}
		case nixie.Dead:
			letters, _, err := r.st.Letters(t.Context(), nixie.Filter{IDs: []nixie.ID{m.ID}}, store.Page{Whole: true})
			if err != nil || len(letters) != 1 {
				t.Fatalf("nixietest: message %s: %d letters, %v", m.ID, len(letters), err)
			}
			result.Letter, result.Failures = &letters[0], letters[0].History
		}
		results = append(results, result)
	}
	return results, due
}

// source keeps what handlers enqueue with their success, and does not send it.
type source struct {
	*store.Source
	run *run
}

var _ lease.PolicyKeeper = (*source)(nil)

// Settle implements [nixie.Source].
func (s *source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	for i := range settlements {
		if st := &settlements[i]; len(st.Then) > 0 {
			s.run.then[st.Delivery.ID] = append(s.run.then[st.Delivery.ID], st.Then...)
			st.Then = nil
		}
	}
	return s.Source.Settle(ctx, settlements)
}
