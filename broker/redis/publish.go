package redis

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Publisher adds records to mailboxes, and describes them. [Connect] makes one. Calls that run at
// once are sent together, one script for each mailbox.
type Publisher struct {
	client redis.UniversalClient
	users  atomic.Int64 // drivers of one server that share it; the last one closes it

	mu      sync.Mutex
	queue   []*sending // not sent yet, in the order of the calls
	running bool       // a goroutine sends the queue
}

var _ broker.Publisher = (*Publisher)(nil)

// sending is a record on its way.
type sending struct {
	mailbox string
	delay   string
	once    string
	body    []byte
	err     error
	call    *sync.WaitGroup // of the call that brought it
}

// Limits of one script call.
const (
	mostRecords = 1000
	mostBytes   = 8 << 20 // unless one record has more
)

// Connect makes a publisher for the servers of an address. It does not wait for them. Close ends
// it.
func Connect(at Address) (*Publisher, error) {
	client, err := at.Client()
	if err != nil {
		return nil, err
	}
	p := &Publisher{client: client}
	p.users.Store(1)
	return p, nil
}

// Close ends the publisher. If drivers share it, the last call does.
func (p *Publisher) Close() {
	if p.users.Add(-1) <= 0 {
		_ = p.client.Close() // there is nothing to do about an error
	}
}

// Publish puts records on their way.
func (p *Publisher) Publish(ctx context.Context, records []broker.Publication) func() []error {
	all, call := make([]sending, len(records)), new(sync.WaitGroup)
	p.mu.Lock()
	for n := range records {
		r, s := &records[n], &all[n]
		if s.err = s.take(r); s.err == nil {
			s.call = call
			call.Add(1)
			p.queue = append(p.queue, s)
		}
	}
	if !p.running && len(p.queue) > 0 {
		p.running = true
		go p.run(context.WithoutCancel(ctx))
	}
	p.mu.Unlock()
	return func() []error { return answersOf(ctx, all, call) }
}

// take checks a record and encodes it.
func (s *sending) take(r *broker.Publication) error {
	if err := CheckName(r.Channel); err != nil {
		return err
	}
	if r.Delay < 0 || r.Delay > MaxDelay {
		return nixie.Errorf(nixie.CodeInvalid, "delay of the record is %s: mailbox %s takes one from 0 to %s", r.Delay, r.Channel, MaxDelay)
	}
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		if !broker.Ours(h.Name) {
			size += len(h.Name) + len(h.Value)
		}
	}
	if size > MaxRecord {
		return nixie.Errorf(nixie.CodeLimit, "record has %d bytes: mailbox %s takes %d at most", size, r.Channel, MaxRecord)
	}
	s.mailbox, s.delay, s.once, s.body = r.Channel, milliseconds(r.Delay), r.Once, encode(r)
	return nil
}

// answersOf waits for the answers of a call until ctx ends.
func answersOf(ctx context.Context, all []sending, call *sync.WaitGroup) []error {
	errs := make([]error, len(all))
	done := make(chan struct{})
	go func() {
		call.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		default:
			for n := range all {
				if all[n].call == nil { // it was refused
					errs[n] = all[n].err
					continue
				}
				errs[n] = nixie.Errorf(nixie.CodeOutcomeUnknown, "record for mailbox %s may arrive: %w", all[n].mailbox, ctx.Err())
			}
			return errs
		}
	}
	for n := range all {
		errs[n] = all[n].err
	}
	return errs
}

// run sends what waits, until nothing does.
func (p *Publisher) run(ctx context.Context) {
	for {
		p.mu.Lock()
		n := enough(p.queue)
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

// enough returns how many records fit into one call.
func enough(queue []*sending) int {
	size := 0
	for n, s := range queue {
		if size += len(s.body); n == mostRecords || n > 0 && size > mostBytes {
			return n
		}
	}
	return len(queue)
}

// send sends a batch, one call of the script for each mailbox.
func (p *Publisher) send(ctx context.Context, batch []*sending) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for len(batch) > 0 {
		name := batch[0].mailbox
		mine := slices.DeleteFunc(slices.Clone(batch), func(s *sending) bool { return s.mailbox != name })
		batch = slices.DeleteFunc(batch, func(s *sending) bool { return s.mailbox == name })
		err := explain("send to mailbox "+name, p.add(ctx, name, mine))
		for _, s := range mine {
			s.err = err
			s.call.Done()
		}
	}
}

// onceFor limits the time that a mailbox remembers the keys of records which it adds once: twice
// the longest lease, after which another worker repeats what a killed one did.
const onceFor = 24 * time.Hour

// add sends records to one mailbox.
func (p *Publisher) add(ctx context.Context, name string, list []*sending) error {
	k, verb, args := keysOf(name), "send", make([]any, 0, 1+3*len(list))
	if slices.ContainsFunc(list, func(s *sending) bool { return s.once != "" }) {
		k, verb, args = k.remembering(name), "once", append(args, milliseconds(onceFor))
	}
	for _, s := range list {
		args = append(args, s.delay)
		if verb == "once" {
			args = append(args, s.once)
		}
		args = append(args, s.body)
	}
	_, err := k.list(ctx, p.client, verb, args...)
	return err
}

// Describe reports which mailboxes exist.
func (p *Publisher) Describe(ctx context.Context, names []string) ([]broker.Channel, error) {
	out := make([]broker.Channel, len(names))
	for n, name := range names {
		m, err := newMailbox(p.client, name)
		if err != nil {
			return nil, err
		}
		out[n] = broker.Channel{Name: name, Retention: -1}
		s, err := m.stats(ctx)
		switch nixie.CodeOf(err) {
		case nixie.CodeNotFound:
			out[n] = broker.Channel{Name: name, Missing: true}
		case nixie.CodeDenied:
			out[n] = broker.Channel{Name: name, Forbidden: true}
		default:
			if err != nil {
				return nil, err
			}
		}
		if s.Retention.Keep > 0 {
			out[n].Retention = s.Retention.Keep
		}
	}
	return out, nil
}
