package rabbitmq

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// hand is one channel with what the server delivered through it. When the channel closes, the
// server gives all of it to others.
type hand struct {
	conn   *amqp.Connection
	ch     *amqp.Channel
	epoch  int64
	server string
	gone   chan struct{} // closed after the channel

	in       chan amqp.Delivery // from all consumers
	forwards sync.WaitGroup     // goroutines that fill it

	// Only Receive uses these.
	consumers []string
	prefetch  int             // of all of them
	spare     []amqp.Delivery // of consumers that were cancelled, not handed out yet
	careful   bool            // the newest record was delivered before, or there was none yet

	mu  sync.Mutex
	out map[uint64]bool // handed out and not done; true: by a consumer
}

// What the server delivers ahead of what a worker does.
const (
	firstPrefetch = 16
	mostPrefetch  = 1024
)

// lookEvery is the time between two questions for a record that may have been delivered before.
const lookEvery = 100 * time.Millisecond

func newHand(conn *amqp.Connection, epoch int64) (*hand, error) {
	ch, err := channel(conn)
	if err != nil {
		return nil, err
	}
	h := &hand{conn: conn, ch: ch, epoch: epoch, server: serverOf(conn), gone: make(chan struct{}), in: make(chan amqp.Delivery),
		careful: true, out: map[uint64]bool{}}
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		for range closes { // what it says is of no use: the calls that fail say why
		}
		close(h.gone)
	}()
	return h, nil
}

func (h *hand) isGone() bool {
	select {
	case <-h.gone:
		return true
	default:
		return h.ch.IsClosed()
	}
}

// take hands out up to most deliveries, and waits for the first.
//
// The crash of one record costs each that was delivered with it. So as long as records come that
// were delivered before, they are asked for one by one, and no consumer is there. A fresh one
// begins a consumer. One more comes when the prefetch of all is in use. None is exchanged for
// another: what is just on its way to a consumer that is cancelled has cost a delivery.
func (h *hand) take(ctx context.Context, queue string, most int, wait time.Duration) (got []amqp.Delivery, err error) {
	if h.careful {
		err = h.cancel()
	} else {
		err = h.consume(queue)
	}
	if err != nil {
		return nil, err
	}
	n := min(most, len(h.spare))
	got, h.spare = append(got, h.spare[:n]...), h.spare[n:]
	switch {
	case len(got) > 0:
	case h.careful:
		got, err = h.get(ctx, queue, wait)
	default:
		got, err = h.wait(ctx, most, wait)
	}
	h.note(got)
	return got, err
}

// wait waits for what consumers are sent.
func (h *hand) wait(ctx context.Context, most int, wait time.Duration) (got []amqp.Delivery, err error) {
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case d := <-h.in:
		got = append(got, d)
	case <-timer.C:
	case <-ctx.Done():
	case <-h.gone:
		return nil, amqp.ErrClosed
	}
	for len(got) > 0 && len(got) < most {
		select {
		case d := <-h.in:
			got = append(got, d)
		default:
			return got, nil
		}
	}
	return got, nil
}

// get asks for one record, and again until there is one.
func (h *hand) get(ctx context.Context, queue string, wait time.Duration) ([]amqp.Delivery, error) {
	end := time.NewTimer(max(wait, 0))
	defer end.Stop()
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		d, ok, err := h.ch.Get(queue, false)
		switch {
		case err != nil:
			return nil, err
		case ok:
			return []amqp.Delivery{d}, nil
		}
		select {
		case <-again.C:
		case <-end.C:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		case <-h.gone:
			return nil, amqp.ErrClosed
		}
	}
}

// note remembers what is handed out.
func (h *hand) note(got []amqp.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range got {
		h.out[got[n].DeliveryTag] = got[n].ConsumerTag != ""
		h.careful = deliveredBefore(&got[n])
	}
}

// consume adds a consumer if the others have delivered all that they may.
func (h *hand) consume(queue string) error {
	h.mu.Lock()
	used := 0
	for _, consumed := range h.out {
		if consumed {
			used++
		}
	}
	h.mu.Unlock()
	if used < h.prefetch || len(h.spare) > 0 || h.prefetch >= mostPrefetch {
		return nil
	}
	more := max(h.prefetch, firstPrefetch)
	if err := h.ch.Qos(more, 0, false); err != nil { // of the next consumer
		return err
	}
	name := fmt.Sprint("nixie-", len(h.consumers), "-", rand.Text())
	deliveries, err := h.ch.Consume(queue, name, false, false, false, false, nil)
	if err != nil {
		return err
	}
	h.consumers, h.prefetch = append(h.consumers, name), h.prefetch+more
	h.forwards.Add(1)
	go func() {
		defer h.forwards.Done()
		for d := range deliveries {
			select {
			case h.in <- d:
			case <-h.gone:
				return
			}
		}
	}()
	return nil
}

// cancel ends the consumers, and keeps what they were sent.
func (h *hand) cancel() error {
	for _, name := range h.consumers {
		if err := h.ch.Cancel(name, false); err != nil {
			return err
		}
	}
	ended := make(chan struct{})
	go func() {
		h.forwards.Wait()
		close(ended)
	}()
	for {
		select {
		case d := <-h.in:
			h.spare = append(h.spare, d)
		case <-ended:
			h.consumers, h.prefetch = nil, 0
			return nil
		}
	}
}

// done acknowledges a message.
func (h *hand) done(tag uint64) error {
	if err := h.has(tag); err != nil {
		return err
	}
	if err := h.ch.Ack(tag, false); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.out, tag)
	return nil
}

// has returns an error if a message is not in the hand.
func (h *hand) has(tag uint64) error {
	if h.isGone() {
		return amqp.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.out[tag]; !there {
		return amqp.ErrClosed
	}
	return nil
}

func (h *hand) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.out)
}

// close gives everything back; by basic.nack where the server does not count that.
func (h *hand) close(nack bool) error {
	if nack && !h.isGone() {
		if err := h.ch.Nack(0, true, true); err != nil { // all that are not acknowledged
			return err
		}
	}
	var err error
	if !h.isGone() {
		err = h.ch.Close() // the server has all acknowledgements when it answers
	}
	leave(h.conn)
	return err
}
