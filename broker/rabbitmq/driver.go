package rabbitmq

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Config holds the settings of a driver.
type Config struct {
	Address                // Queue is required
	Stages  []broker.Stage // queues where retries wait; none: they wait in hand
	Create  bool           // make the queue and the stages if they are not there
}

// Driver receives from one quorum queue, and publishes to all of its virtual host. [Open] makes
// one.
type Driver struct {
	*Publisher
	c        Config
	features broker.Features
	version  string          // of the server
	stages   map[string]bool // names of their queues

	mu      sync.Mutex
	hand    *hand // nil: there was no connection yet
	lost    chan struct{}
	ended   error // why no connection is made any more
	closing chan struct{}
	over    bool
}

var (
	_ broker.Driver   = (*Driver)(nil)
	_ broker.Counter  = (*Driver)(nil)
	_ broker.Examiner = (*Driver)(nil)
)

// Open connects to the server and looks at the queues. [nixie.CodeInvalid] means that the queue or
// a stage is of another kind than it has to be.
func Open(ctx context.Context, c Config) (*Driver, error) {
	if c.Queue == "" {
		return nil, noQueue(c.Address)
	}
	if err := broker.CheckStages(c.Stages, 1); err != nil {
		return nil, err
	}
	p, err := Connect(c.Address)
	if err != nil {
		return nil, err
	}
	d := &Driver{Publisher: p, c: c, stages: map[string]bool{}, lost: make(chan struct{}), closing: make(chan struct{})}
	for _, s := range c.Stages {
		d.stages[s.Of(c.Queue)] = true
	}
	if err := d.begin(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return d, nil
}

// begin makes and checks the queues, and receives.
func (d *Driver) begin(ctx context.Context) error {
	conn, err := d.c.dial(ctx)
	if err != nil {
		return err
	}
	if err := d.prepare(conn); err != nil {
		leave(conn)
		return err
	}
	d.version = versionOf(conn)
	d.features = broker.Features{System: "rabbitmq", Held: true, Stages: d.c.Stages, CountsAll: countsAll(d.version)}
	d.hand, err = newHand(conn, 0)
	if err != nil {
		leave(conn)
		return err
	}
	d.watch(d.hand)
	return nil
}

// Features returns what RabbitMQ can do, as the version of the server is.
func (d *Driver) Features() broker.Features { return d.features }

// Lost returns a channel that is closed when the connection breaks.
func (d *Driver) Lost() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// watch tells when a hand is lost.
func (d *Driver) watch(h *hand) {
	go func() {
		<-h.gone
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.lost)
		d.lost = make(chan struct{})
	}()
}

// holding returns the hand, and makes a new one if the connection broke.
func (d *Driver) holding(ctx context.Context) (*hand, error) {
	d.mu.Lock()
	h, ended, over := d.hand, d.ended, d.over
	d.mu.Unlock()
	switch {
	case over:
		return nil, closedError()
	case ended != nil:
		return nil, ended
	case !h.isGone():
		return h, nil
	}
	conn, err := d.c.dial(ctx)
	if err != nil {
		return nil, err
	}
	if all := countsAll(versionOf(conn)); all != d.features.CountsAll {
		leave(conn)
		return nil, d.end(nixie.Errorf(nixie.CodeInvalid,
			"the server is of version %s by now, which counts deliveries in another way: start the consumer again", versionOf(conn)))
	}
	made, err := newHand(conn, h.epoch+1)
	if err != nil {
		leave(conn)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		leave(conn)
		return nil, closedError()
	}
	d.hand = made
	d.watch(made)
	return made, nil
}

func (d *Driver) end(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = err
	return err
}

// receipt tells which hand has a record, and under which tag.
type receipt struct {
	hand *hand
	tag  uint64
}

// Receive hands out what the server delivers.
func (d *Driver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	end := time.Now().Add(want.Wait)
	h, err := d.holding(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	got, err := h.take(ctx, d.c.Queue, want.Max, time.Until(end))
	if err != nil {
		return nil, explain("receive from queue "+d.c.Queue, err)
	}
	records := make([]broker.Record, len(got))
	now := time.Now()
	for n := range got {
		if _, counted := got[n].Headers[fieldCount]; !counted && got[n].Redelivered {
			return nil, d.end(notQuorum(d.c.Queue))
		}
		d.record(h, &got[n], now, &records[n])
	}
	return records, nil
}

// record makes a record of a delivery. What came back from a stage says so.
func (d *Driver) record(h *hand, from *amqp.Delivery, now time.Time, into *broker.Record) {
	name := decode(from, d.c.KeyHeader, now, into)
	into.ID = idOf(h.server, d.c.VHost, d.c.Queue, name, into.Timestamp)
	into.Channel, into.MessageID, into.Server, into.Database = d.c.Queue, nixie.ID(into.ID).String(), h.server, d.c.VHost
	into.Epoch, into.Receipt = h.epoch, receipt{h, from.DeliveryTag}
	if all := deathsOf(from.Headers); len(all) > 0 && d.stages[all[0].Queue] {
		into.Channel, into.Source = all[0].Queue, d.c.Queue
	}
	into.PriorDeliveries = int(min(wholeNumber(from.Headers[fieldCount]), maxCount))
	if !d.features.CountsAll {
		into.Crashes = into.PriorDeliveries
	}
}

// maxCount limits a count of deliveries.
const maxCount = 1 << 20

// Ack removes messages. The server hears of it at once, and does not answer: one whose connection
// breaks now may come again.
func (d *Driver) Ack(_ context.Context, records []*broker.Record) []error {
	return d.each(records, func(h *hand, tag uint64) error { return h.done(tag) })
}

// Extend tells which records this driver still holds.
func (d *Driver) Extend(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	return d.each(records, func(h *hand, tag uint64) error { return h.has(tag) })
}

// each asks the hand of each record. A record of an earlier connection is lost: its tag may be that
// of another message by now.
func (d *Driver) each(records []*broker.Record, do func(*hand, uint64) error) []error {
	d.mu.Lock()
	now, over := d.hand, d.over
	d.mu.Unlock()
	errs := make([]error, len(records))
	for n, r := range records {
		held := r.Receipt.(receipt)
		switch {
		case over:
			errs[n] = closedError()
		case held.hand != now:
			errs[n] = lostError(r.MessageID)
		default:
			if do(held.hand, held.tag) != nil {
				errs[n] = lostError(r.MessageID)
			}
		}
	}
	return errs
}

func lostError(name string) error {
	return nixie.Errorf(nixie.CodeLeaseLost, "message %s is not in this hand any more: its connection broke", name)
}

// Nack is never called: the server cannot be told how a delivery ended.
func (d *Driver) Nack(_ context.Context, list []broker.Return) []error {
	errs := make([]error, len(list))
	for n := range errs {
		errs[n] = nixie.Errorf(nixie.CodeInvalid, "RabbitMQ takes no single message back")
	}
	return errs
}

// Remaining counts what waits in the queue and on its stages, and what this driver holds. The
// server does not tell what other consumers hold.
func (d *Driver) Remaining(ctx context.Context) (broker.Remaining, error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	conn, err := d.connection(ctx)
	if err != nil {
		return broker.Remaining{}, err
	}
	d.mu.Lock()
	all := int64(d.hand.size())
	d.mu.Unlock()
	names := []string{d.c.Queue}
	for name := range d.stages {
		names = append(names, name)
	}
	for _, name := range names {
		n, err := look(conn, name)
		if err != nil {
			return broker.Remaining{}, explain("count queue "+name, err)
		}
		all += int64(n)
	}
	return broker.Remaining{All: all, Ours: all}, nil
}

// Close gives the rest back. From version 4.3 on the server does not count that.
func (d *Driver) Close(context.Context) error {
	d.mu.Lock()
	h, over := d.hand, d.over
	d.over = true
	d.mu.Unlock()
	if over {
		return closedError()
	}
	close(d.closing)
	err := h.close(!d.features.CountsAll)
	d.Publisher.Close()
	if err != nil && !errors.Is(err, amqp.ErrClosed) {
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the server may not know what is done: %w", err)
	}
	return nil
}
