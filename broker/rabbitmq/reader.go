package rabbitmq

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Reader takes messages out of a queue, for an office that adopts them or for a redrive. Messages
// that are done are removed, and Close gives the others back. It ends after as many messages as lay
// there when it was opened. [Read] makes one.
type Reader struct {
	at     Address
	conn   *amqp.Connection
	ch     *amqp.Channel
	server string
	calls  sync.Mutex // of the channel, which answers one at a time
	left   int64
	ahead  *amqp.Delivery // taken, and to be handed out alone
}

var _ broker.Reader = (*Reader)(nil)

// Bounds of what one call of [Reader.Next] takes.
const (
	MostAtOnce = 100     // messages
	mostBytes  = 8 << 20 // of their bodies, unless one has more
)

// Read opens a reader of the queue of an address, which has to be there.
func Read(ctx context.Context, at Address) (*Reader, error) {
	if at.Queue == "" {
		return nil, noQueue(at)
	}
	conn, err := at.dial(ctx)
	if err != nil {
		return nil, err
	}
	r := &Reader{at: at, conn: conn, server: serverOf(conn)}
	n, err := look(conn, at.Queue)
	if err == nil {
		r.left = int64(n)
		r.ch, err = conn.Channel()
	}
	if err != nil {
		leave(conn)
		return nil, explain("read queue "+at.Queue, err)
	}
	return r, nil
}

// Next takes messages, [MostAtOnce] at most. One that was delivered before comes alone: should the
// process die now, a queue with a limit may drop it, and it is in hand for as short as can be.
func (r *Reader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	most = min(most, MostAtOnce)
	if r.ahead != nil {
		alone := []*amqp.Delivery{r.ahead}
		r.ahead = nil
		return r.records(alone), nil
	}
	var taken []*amqp.Delivery
	for size := 0; len(taken) < most && size < mostBytes && r.left > 0; r.left-- {
		if ctx.Err() != nil {
			return r.records(taken), nixie.Errorf(nixie.CodeUnavailable, "read queue %s: %w", r.at.Queue, ctx.Err())
		}
		d, ok, err := r.get()
		if err != nil {
			return nil, explain("read queue "+r.at.Queue, err)
		}
		if !ok {
			r.left = 0
			break
		}
		if size += len(d.Body); deliveredBefore(&d) {
			if r.left--; len(taken) == 0 {
				return r.records([]*amqp.Delivery{&d}), nil
			}
			r.ahead = &d
			break
		}
		taken = append(taken, &d)
	}
	return r.records(taken), nil
}

func (r *Reader) get() (amqp.Delivery, bool, error) {
	r.calls.Lock()
	defer r.calls.Unlock()
	return r.ch.Get(r.at.Queue, false)
}

// deliveredBefore reports whether a queue has counted a delivery of a message.
func deliveredBefore(d *amqp.Delivery) bool { return wholeNumber(d.Headers[fieldCount]) > 0 }

// records makes records of messages. RabbitMQ names no message, so each delivery of one that
// another program published is a record of its own: equal messages are as many records.
func (r *Reader) records(taken []*amqp.Delivery) []broker.Record {
	out := make([]broker.Record, len(taken))
	now := time.Now()
	for n, d := range taken {
		one := &out[n]
		name := decode(d, r.at.KeyHeader, now, one)
		tellDeath(d, one)
		one.ID = idOf(r.server, r.at.VHost, r.at.Queue, name, one.Timestamp)
		one.Channel, one.MessageID, one.Server, one.Database = r.at.Queue, nixie.ID(one.ID).String(), r.server, r.at.VHost
		one.Receipt = d.DeliveryTag
	}
	return out
}

// idOf names a message of a queue: one without a name gets an ID that no other has. The form is
// that of a UUID of version 7.
func idOf(server, vhost, queue, name string, at time.Time) (id [16]byte) {
	if name == "" {
		_, _ = rand.Read(id[:]) // it never fails
	} else {
		sum := sha256.Sum256([]byte(server + "\x00" + vhost + "\x00" + queue + "\x00" + name))
		copy(id[:], sum[:])
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(at.UnixMilli(), 1)))
	copy(id[:6], ms[2:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// Done removes messages, and returns when the server has done that.
func (r *Reader) Done(_ context.Context, calls ...[]*broker.Record) error {
	done := slices.Concat(calls...)
	if len(done) == 0 {
		return nil
	}
	r.calls.Lock()
	defer r.calls.Unlock()
	for _, one := range done {
		if err := r.ch.Ack(one.Receipt.(uint64), false); err != nil {
			return explain("acknowledge to queue "+r.at.Queue, err)
		}
	}
	// The server answers in order, so it has the acknowledgements when it answers this.
	return explain("acknowledge to queue "+r.at.Queue, r.ch.Qos(MostAtOnce, 0, false))
}

// Left returns how many messages are still to come, about.
func (r *Reader) Left() int64 {
	if r.ahead != nil {
		return r.left + 1
	}
	return r.left
}

// Close gives back what is not done. A quorum queue counts that as a delivery.
func (r *Reader) Close() { leave(r.conn) }
