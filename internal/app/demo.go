package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

// Demo is a shop to look around in: four queues, the letters of three outages and of many small
// failures, a stopped operation, a blocked stream, and live traffic that fails now and then. Its
// store is in a temporary folder, which Close removes.
type Demo struct {
	Store  store.Store
	clerk  *office.Office
	policy *policy.Policy
	folder string
	clock  func() time.Time
}

// The queues of the demo.
const (
	demoOrders   = "orders" // in strict order, so that a dead order blocks its customer
	demoPayments = "payments"
	demoEmails   = "emails"
	demoExports  = "exports" // paused
)

// unknownCurrency is a mistake of a producer.
const unknownCurrency = "EUX"

// outage is a cause that killed many messages in a part of the past day.
type outage struct {
	queue, kind  string
	letters      int
	began, ended time.Duration // before now
	reason       nixie.Reason
	permanent    bool
	text         string // %d is a number that differs
}

var outages = []outage{
	{demoPayments, "charge-card", 24_000, 9 * time.Hour, 6 * time.Hour, nixie.ReasonTransportUnavailable, false,
		"charge order %d: dial tcp 10.0.4.7:443: connect: connection refused"},
	{demoEmails, "send-receipt", 9_000, 4 * time.Hour, 80 * time.Minute, nixie.ReasonThrottled, false,
		"smtp: 421 4.7.0 too many messages for order %d, try again later"},
	{demoOrders, "order-placed", 5_500, 50 * time.Minute, 0, nixie.ReasonValidation, true,
		"order %d: unknown currency \"" + unknownCurrency + "\""},
	{demoExports, "export-day", 420, 20 * time.Hour, 2 * time.Hour, nixie.ReasonTimeout, false,
		"export of day %d: no answer from warehouse within 30s"},
	{demoPayments, "refund", 310, 23 * time.Hour, 3 * time.Hour, nixie.ReasonAuth, true,
		"refund %d: 401 Unauthorized: token of client shop has expired"},
	{demoOrders, "order-placed", 260, 22 * time.Hour, time.Hour, nixie.ReasonPanic, false,
		"panic: runtime error: index out of range [%d] with length 3"},
	{demoEmails, "send-receipt", 190, 23 * time.Hour, 30 * time.Minute, nixie.ReasonValidation, true,
		"no address for customer %d"},
	{demoPayments, "charge-card", 150, 16 * time.Hour, 4 * time.Hour, nixie.ReasonDependency, false,
		"charge order %d: bank answered 503 Service Unavailable"},
	{demoExports, "export-day", 90, 12 * time.Hour, 5 * time.Hour, nixie.ReasonResource, false,
		"write part %d: no space left on device"},
	{demoOrders, "order-changed", 60, 18 * time.Hour, 10 * time.Hour, nixie.ReasonSerialization, true,
		"decode order %d: unexpected end of JSON input"},
	{demoEmails, "newsletter", 20, 14 * time.Hour, 13 * time.Hour, nixie.ReasonTransportUnavailable, false,
		"lookup mx%d.example: no such host"},
}

// early is the part of the past that a demo has from the start. Run adds the rest, without a
// wait.
const early = 10

// NewDemo opens a shop. The observer hears what happens in it; it may be nil.
func NewDemo(ctx context.Context, clock func() time.Time, observer *nixie.Observer) (_ *Demo, err error) {
	d := &Demo{clock: clock}
	if d.policy, err = policy.New(policy.Config{MaxAttempts: 3}); err != nil {
		return nil, err
	}
	if d.folder, err = os.MkdirTemp("", "nixie-demo-"); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(filepath.Join(d.folder, "demo.db"), sqlite.Options{Clock: clock, Owner: "shop"})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.folder))
	}
	d.Store = store.Observe(st, observer)
	if d.clerk, err = office.New(office.Config{Store: d.Store, Actor: "ann", Clock: clock}); err == nil {
		err = d.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close closes the store and removes it.
func (d *Demo) Close() error { return errors.Join(d.Store.Close(), os.RemoveAll(d.folder)) }

// open sets the queues, and makes what an operator finds in the morning.
func (d *Demo) open(ctx context.Context) error {
	settings := map[string]string{
		demoOrders: "order=strict", demoPayments: "retention=14d", demoEmails: "lease=1m", demoExports: "lease=10m",
	}
	for queue, pair := range settings {
		edit, err := office.ParseSettings([]string{pair})
		if err != nil {
			return err
		}
		if _, err := d.clerk.Set(ctx, queue, edit, "as the shop needs it"); err != nil {
			return err
		}
	}
	for _, o := range outages {
		if err := d.kill(ctx, &o, func(n int) bool { return n%early == 0 }); err != nil {
			return err
		}
	}
	if err := d.stop(ctx); err != nil {
		return err
	}
	if _, err := d.clerk.Pause(ctx, []string{demoExports}, "the warehouse moves tonight"); err != nil {
		return err
	}
	return d.begin(ctx)
}

// kill makes the chosen letters of an outage. Their histories differ in times and numbers only.
func (d *Demo) kill(ctx context.Context, o *outage, chosen func(n int) bool) error {
	const inOneCall = 250
	var letters []nixie.Letter
	for i := range o.letters {
		if chosen(i) {
			died := d.clock().Add(-o.began + time.Duration(i)*(o.began-o.ended)/time.Duration(o.letters))
			letters = append(letters, o.letter(d.policy, i, died))
		}
		if len(letters) == 0 || len(letters) < inOneCall && i < o.letters-1 {
			continue
		}
		if _, errs := d.clerk.Adopt(ctx, letters, "the past of the demo"); errors.Join(errs...) != nil {
			return errors.Join(errs...)
		}
		letters = letters[:0]
	}
	return nil
}

func (o *outage) letter(p *policy.Policy, i int, died time.Time) nixie.Letter {
	number := 10_000 + i%9_000 // of an order
	attempts := 3
	if o.permanent {
		attempts = 1
	}
	m := nixie.Message{
		Queue: o.queue, Type: o.kind, Key: fmt.Sprintf("%s-%d", o.kind, 10_000+i), State: nixie.Dead,
		Body: fmt.Appendf(nil, `{"order": %d, "customer": "customer-%d", "amount": "%d.00", "currency": %q}`,
			number, i%700, 5+i%190, o.currency()),
		Headers: []nixie.Header{
			{Name: nixie.HeaderRequestID, Value: fmt.Sprintf("shop-%08x", i*2_654_435)},
			{Name: "authorization", Value: "Bearer 3f9a1c77e0b24d5a"},
		},
		Attempts: attempts, Deliveries: attempts, Generation: 1,
	}
	m.EnqueuedAt = died.Add(-time.Duration(attempts) * 20 * time.Second)
	m.FirstReceivedAt = m.EnqueuedAt.Add(time.Second)
	l := nixie.Letter{Message: m, DiedAt: died}
	delivery := &nixie.Delivery{Message: m}
	for a := range attempts {
		at := died.Add(time.Duration(a+1-attempts) * 15 * time.Second)
		delivery.Attempts = a + 1
		f := p.Diagnose(delivery, o.failure(number), policy.Attempt{
			StartedAt: at.Add(-time.Duration(200+i%800) * time.Millisecond), FailedAt: at, Node: "shop-a",
			Worker: fmt.Sprintf("%s-%d", o.queue, 1+i%3),
		})
		s := p.Decide(delivery, f, at)
		f.Decision = s.Verb
		if s.Verb == nixie.Retry {
			f.NextAt = at.Add(s.Delay)
		}
		l.History = append(l.History, *f)
		if b := s.Burial; b != nil {
			l.Cause, l.Status, l.Signature, l.Fingerprint = b.Cause, b.Status, b.Signature, b.Fingerprint
			l.Redrivable, l.NeedsReview, l.Rule = b.Redrivable, b.NeedsReview, b.Rule
		}
	}
	last := &l.History[attempts-1]
	l.Class, l.Reason, l.FirstFailedAt, l.LastFailedAt = last.Class, last.Reason, l.History[0].FailedAt, last.FailedAt
	return l
}

func (o *outage) currency() string {
	if strings.Contains(o.text, unknownCurrency) {
		return unknownCurrency
	}
	return "EUR"
}

func (o *outage) failure(number int) error {
	err := nixie.WithReason(fmt.Errorf(o.text, number), o.reason)
	if o.permanent {
		return nixie.Permanent(err)
	}
	return err
}

// stop begins an operation, and stops it on the way.
func (d *Demo) stop(ctx context.Context) error {
	const text = "queue:emails reason:throttled"
	filter, err := office.ParseFilter(text, d.clock())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work := &office.OperationRequest{
		Event: store.OnRedrive, Filter: filter, Text: text, Reason: "the provider raised our limit",
		Progress: func(v office.OperationResult) {
			if v.Done() >= 300 {
				stop()
			}
		},
	}
	op, err := d.clerk.Begin(ctx, work)
	if err != nil {
		return err
	}
	if _, err := d.clerk.Run(ctx, op.Operation, work); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// begin enqueues an order that will block its customer, what waits in the paused queue, and what is
// due later.
func (d *Demo) begin(ctx context.Context) error {
	var list []nixie.Message
	currency := unknownCurrency // of the first, which dies
	for i := range 7 {
		list = append(list, nixie.Message{
			Queue: demoOrders, Type: "order-placed", Stream: "customer-1042", Key: fmt.Sprintf("order-placed-%d", 90_001+i),
			Body: fmt.Appendf(nil, `{"order": %d, "customer": "customer-1042", "currency": %q}`, 90_001+i, currency),
		})
		currency = "EUR"
	}
	for i := range 12 {
		list = append(list,
			nixie.Message{Queue: demoExports, Type: "export-day", Key: fmt.Sprintf("2026-%02d", i+1), Body: []byte(`{"format": "csv"}`)},
			nixie.Message{Queue: demoEmails, Type: "newsletter", Key: fmt.Sprintf("newsletter-%d", i),
				Delay: time.Duration(i+1) * 20 * time.Minute, Body: []byte(`{"template": "november"}`)})
	}
	_, err := d.Store.Enqueue(ctx, list...)
	return err
}

// Run adds the rest of the past, and is the live traffic: it enqueues and handles messages until
// ctx ends.
func (d *Demo) Run(ctx context.Context) error {
	var workers []*worker.Worker
	for _, queue := range []string{demoOrders, demoPayments, demoEmails} {
		w, err := worker.New(worker.Config{
			Source: store.NewSource(d.Store, queue), Handler: nixie.HandlerFunc(handleDemo), Policy: d.policy, Concurrency: 4,
			Name:  queue + "-1",
			Clock: d.clock, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make([]error, len(workers))
	var running sync.WaitGroup
	for i, w := range workers {
		running.Go(func() { ended[i] = w.Run(ctx) })
	}
	running.Go(func() { _ = d.past(ctx) }) // a call that ends with the demo is no failure
	err := d.produce(ctx)
	end()
	running.Wait()
	return errors.Join(err, errors.Join(ended...))
}

// past adds the letters that the demo did not have from the start.
func (d *Demo) past(ctx context.Context) error {
	for _, o := range outages {
		if err := d.kill(ctx, &o, func(n int) bool { return n%early != 0 }); err != nil {
			return err
		}
	}
	return nil
}

// produce enqueues some messages a second.
func (d *Demo) produce(ctx context.Context) error {
	tick := time.NewTicker(400 * time.Millisecond)
	defer tick.Stop()
	for n := 100_000; ; n++ {
		kinds := [...][2]string{{demoOrders, "order-placed"}, {demoPayments, "charge-card"}, {demoEmails, "send-receipt"}}
		kind := kinds[n%len(kinds)]
		m := nixie.Message{Queue: kind[0], Type: kind[1], Key: fmt.Sprintf("%s-%d", kind[1], n),
			Body: fmt.Appendf(nil, `{"order": %d, "currency": "EUR"}`, n)}
		if kind[0] == demoOrders {
			m.Stream = fmt.Sprintf("customer-%d", n%700)
		}
		if _, err := d.Store.Enqueue(ctx, m); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
