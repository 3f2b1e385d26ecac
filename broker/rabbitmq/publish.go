package rabbitmq

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Publisher adds messages to queues of a virtual host, and describes queues. [Connect] makes one.
// It goes to the default exchange, which every queue is bound to by its name.
type Publisher struct {
	at Address

	mu      sync.Mutex
	queue   []*sending // not sent yet, in the order of the calls
	running bool       // a goroutine sends the queue
	line    *line      // to the server, which that goroutine makes
	closed  bool

	asking sync.Mutex // of questions, which have a connection of their own
	asked  *amqp.Connection
}

var (
	_ broker.Publisher = (*Publisher)(nil)
	_ broker.Located   = (*Publisher)(nil)
)

// sending is a record on its way.
type sending struct {
	record broker.Publication
	name   string // that tells it from all others
	err    error
	call   *sync.WaitGroup // of the call that brought it; nil: it was refused
}

// Connect makes a publisher for the servers of an address. It does not wait for them. Close ends
// it.
func Connect(at Address) (*Publisher, error) {
	if at.TLS {
		if _, err := broker.ReadTLS("rabbitmq", at.CA, at.Cert, at.Key); err != nil {
			return nil, err
		}
	}
	return &Publisher{at: at}, nil
}

// Publish puts records on their way. The server confirms each; on a quorum queue most of its
// members have it then.
func (p *Publisher) Publish(ctx context.Context, records []broker.Publication) func() []error {
	all, call := make([]sending, len(records)), new(sync.WaitGroup)
	p.mu.Lock()
	for n := range records {
		s := &all[n]
		s.record = records[n]
		if p.closed {
			s.err = closedError()
			continue
		}
		s.call = call
		call.Add(1)
		p.queue = append(p.queue, s)
	}
	if !p.running && len(p.queue) > 0 {
		p.running = true
		go p.run(context.WithoutCancel(ctx))
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		call.Wait()
		close(done)
	}()
	return func() []error { return answersOf(ctx, all, done) }
}

// answersOf waits for the answers of a call until ctx ends.
func answersOf(ctx context.Context, all []sending, done <-chan struct{}) []error {
	errs := make([]error, len(all))
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		default:
			for n := range all {
				if all[n].call == nil {
					errs[n] = all[n].err
					continue
				}
				errs[n] = unknown(all[n].record.Channel, ctx.Err())
			}
			return errs
		}
	}
	for n := range all {
		errs[n] = all[n].err
	}
	return errs
}

// unknown tells that a record was sent, and that the server did not say what became of it.
func unknown(queue string, why error) error {
	return nixie.Errorf(nixie.CodeOutcomeUnknown, "record for queue %s may have arrived: %w", queue, why)
}

// atOnce limits the records that are sent and not confirmed.
const atOnce = 1000

// run sends what waits, until nothing does.
func (p *Publisher) run(ctx context.Context) {
	for {
		p.mu.Lock()
		n := min(len(p.queue), atOnce)
		batch := p.queue[:n]
		p.queue = p.queue[n:]
		if n == 0 {
			p.queue, p.running = nil, false
		}
		p.mu.Unlock()
		if n == 0 {
			return
		}
		p.send(ctx, batch)
	}
}

// send sends a batch and waits for its answers. A record that may be too large for the server goes
// alone: its refusal closes the channel, and would leave the others without an answer.
func (p *Publisher) send(ctx context.Context, batch []*sending) {
	for len(batch) > 0 {
		l, err := p.connected(ctx)
		if err != nil {
			for _, s := range batch {
				s.end(err)
			}
			return
		}
		n := 0
		for n < len(batch) && len(batch[n].record.Value) <= l.takes {
			n++
		}
		n = max(n, 1)
		l.send(batch[:n])
		batch = batch[n:]
	}
}

func (s *sending) end(err error) {
	s.err = err
	s.call.Done()
}

// connected returns the line to the server, and makes a new one if it broke.
func (p *Publisher) connected(ctx context.Context) (*line, error) {
	p.mu.Lock()
	old, closed := p.line, p.closed
	p.mu.Unlock()
	takes := surelyTaken
	switch {
	case closed:
		return nil, closedError()
	case old != nil && !old.broken():
		return old, nil
	case old != nil:
		takes = old.takes
		leave(old.conn)
	}
	conn, err := p.at.dial(ctx)
	if err != nil {
		return nil, err
	}
	made, err := newLine(conn, takes)
	if err != nil {
		leave(conn)
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		leave(conn)
		return nil, closedError()
	}
	p.line = made
	return made, nil
}

// Close ends the publisher. Records without an answer may have arrived.
func (p *Publisher) Close() {
	p.mu.Lock()
	p.closed = true
	rest, line := p.queue, p.line
	p.queue = nil
	p.mu.Unlock()
	for _, s := range rest {
		s.end(closedError())
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	if line != nil {
		leave(line.conn)
	}
	if p.asked != nil {
		leave(p.asked)
	}
}

// surelyTaken is a size of a body that every server takes.
const surelyTaken = 256 << 10

// line is a channel whose messages the server confirms.
type line struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	user    string
	takes   int // bytes of the largest body that the server is known to take
	next    uint64
	blocked atomic.Pointer[string] // why the server takes nothing; nil: it does

	mu      sync.Mutex
	waiting map[uint64]*sending // sent and not confirmed, by number
	back    map[string]bool     // names of those that the server returned
	ended   *amqp.Error         // why the channel closed
	some    bool                // the server has confirmed one
	done    chan struct{}       // is told when nothing waits any more, or the channel has closed
	over    chan struct{}       // closed after the channel
}

func newLine(conn *amqp.Connection, takes int) (*line, error) {
	ch, err := channel(conn)
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn, ch: ch, takes: takes, next: 1, waiting: map[uint64]*sending{}, back: map[string]bool{},
		done: make(chan struct{}, 1), over: make(chan struct{})}
	if plain, ok := conn.Config.SASL[0].(*amqp.PlainAuth); ok {
		l.user = plain.Username
	}
	// Without buffers, what is returned is noted before its confirmation comes.
	confirmed, returned := ch.NotifyPublish(make(chan amqp.Confirmation)), ch.NotifyReturn(make(chan amqp.Return))
	closes, blocks := ch.NotifyClose(make(chan *amqp.Error, 1)), conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	if err := ch.Confirm(false); err != nil {
		return nil, explain("publish with confirms", err)
	}
	go l.listen(confirmed, returned, closes)
	go func() {
		for b := range blocks {
			if l.blocked.Store(nil); b.Active {
				l.blocked.Store(&b.Reason)
			}
		}
	}()
	return l, nil
}

func (l *line) broken() bool { return l.ch.IsClosed() }

// listen notes what the server says until the channel closes.
func (l *line) listen(confirmed <-chan amqp.Confirmation, returned <-chan amqp.Return, closes <-chan *amqp.Error) {
	defer close(l.over)
	for confirmed != nil || returned != nil {
		select {
		case c, ok := <-confirmed:
			if !ok {
				confirmed = nil
				continue
			}
			l.confirm(c)
		case r, ok := <-returned:
			if !ok {
				returned = nil
				continue
			}
			name := decode(&amqp.Delivery{Headers: r.Headers}, "", time.Time{}, new(broker.Record))
			l.mu.Lock()
			l.back[name] = true
			l.mu.Unlock()
		}
	}
	why := <-closes
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = why
	for number, s := range l.waiting {
		delete(l.waiting, number)
		s.end(l.lost(s, len(l.waiting) == 0))
	}
	l.tell()
}

// lost explains what became of a record when its channel closed.
func (l *line) lost(s *sending, alone bool) error {
	err := error(amqp.ErrClosed)
	if l.ended != nil {
		err = l.ended
	}
	what := "publish to queue " + s.record.Channel
	switch code := nixie.CodeOf(explain(what, err)); {
	case code == nixie.CodeLimit && len(s.record.Value) > l.takes, code == nixie.CodeDenied && !l.some:
		return explain(what, err)
	}
	return unknown(s.record.Channel, err)
}

func (l *line) tell() {
	select {
	case l.done <- struct{}{}:
	default:
	}
}

func (l *line) confirm(c amqp.Confirmation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.waiting[c.DeliveryTag]
	if s == nil {
		return
	}
	delete(l.waiting, c.DeliveryTag)
	l.some = true
	switch {
	case l.back[s.name]:
		delete(l.back, s.name)
		s.end(nixie.Errorf(nixie.CodeNotFound, "queue %s is not there: create it, or correct its name and vhost", s.record.Channel))
	case !c.Ack:
		s.end(nixie.Errorf(nixie.CodeOutcomeUnknown, "queue %s refused the record, and some of its members may have it: "+
			"it is full, or lost its leader", s.record.Channel))
	default:
		l.takes = max(l.takes, len(s.record.Value))
		s.end(nil)
	}
	if len(l.waiting) == 0 {
		l.tell()
	}
}

// send sends records, and waits for their answers.
func (l *line) send(batch []*sending) {
	for _, s := range batch {
		if why := l.blocked.Load(); why != nil {
			s.end(nixie.Errorf(nixie.CodeUnavailable, "the server takes no messages: %s: see that it has memory and disk", *why))
			continue
		}
		l.publish(s)
	}
	for {
		l.mu.Lock()
		left := len(l.waiting)
		l.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-l.done:
		case <-l.over:
			return
		}
	}
}

// publish sends one record.
func (l *line) publish(s *sending) {
	r := &s.record
	m, err := encode(r, l.user, rand.Text(), time.Now())
	if err == nil {
		err = nixie.CheckName("queue", r.Channel)
	}
	if err != nil {
		s.end(err)
		return
	}
	s.name = decode(&amqp.Delivery{Headers: m.Headers}, "", time.Time{}, new(broker.Record))
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		s.end(explain("publish to queue "+r.Channel, amqp.ErrClosed))
		return
	}
	number := l.next
	l.next++
	l.waiting[number] = s
	l.mu.Unlock()
	if err := l.ch.Publish(amqp.DefaultExchange, r.Channel, true, false, m); err != nil {
		l.notSent(number, s, err)
	}
}

// notSent ends a record that the library did not send, or not whole.
func (l *line) notSent(number uint64, s *sending, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[number] == nil {
		return // the end of the channel has answered it
	}
	delete(l.waiting, number)
	if l.ch.IsClosed() {
		s.end(unknown(s.record.Channel, err))
		return
	}
	l.next = number // the library does not count it either
	s.end(nixie.Errorf(nixie.CodeInvalid, "publish to queue %s: %w", s.record.Channel, err))
}
