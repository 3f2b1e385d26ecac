package rabbitmq_test

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/rabbitmq"
)

// open opens a driver of a queue, which the end of the test closes.
func open(t *testing.T, r *raw, queue string, stages ...broker.Stage) *rabbitmq.Driver {
	t.Helper()
	d, err := rabbitmq.Open(t.Context(), rabbitmq.Config{Address: r.on(queue), Stages: stages})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(limited(t)) })
	return d
}

// received waits for one record.
func received(t *testing.T, d *rabbitmq.Driver) *broker.Record {
	t.Helper()
	ctx := limited(t)
	for ctx.Err() == nil {
		got, err := d.Receive(ctx, broker.Want{Max: 1, Wait: time.Second, Lease: time.Minute})
		if len(got) == 1 {
			return &got[0]
		}
		if err != nil && nixie.CodeOf(err) != nixie.CodeUnavailable {
			t.Fatal(err)
		}
	}
	t.Fatal("nothing came")
	return nil
}

// A connection that breaks loses its records and says so. An acknowledgement of one of them does
// not reach the server, where its number is that of another delivery by now.
func TestLateAckAfterAReconnect(t *testing.T) {
	r := actual(t)
	queue := r.declare(nil)
	r.put(queue, amqp.Publishing{Body: []byte("a")})
	d := open(t, r, queue)
	old, lost := received(t, d), d.Lost()
	d.Break()
	select {
	case <-lost:
	case <-limited(t).Done():
		t.Error("the loss was not told")
	}
	again := received(t, d)
	if again.Epoch <= old.Epoch || again.PriorDeliveries != 1 || string(again.Value) != "a" {
		t.Errorf("it came again as %+v, after %+v", again, old)
	}
	for what, err := range map[string]error{"extended": d.Extend(t.Context(), []*broker.Record{old}, 0)[0],
		"acknowledged": d.Ack(t.Context(), []*broker.Record{old})[0]} {
		if nixie.CodeOf(err) != nixie.CodeLeaseLost {
			t.Errorf("a lost record was %s: %v", what, err)
		}
	}
	if err := d.Close(limited(t)); err != nil {
		t.Fatal(err)
	}
	if got := r.take(queue); string(got.Body) != "a" {
		t.Errorf("%q came", got.Body)
	}
}

// TestHowItEnded compares the first column of the table of TestVersions with the server: how an
// earlier delivery ended makes no difference there.
func TestHowItEnded(t *testing.T) {
	for how, end := range map[string]func(t *testing.T, r *raw, d *amqp.Delivery){
		"given back by basic.nack":   func(_ *testing.T, _ *raw, d *amqp.Delivery) { _ = d.Nack(false, true) },
		"given back by basic.reject": func(_ *testing.T, _ *raw, d *amqp.Delivery) { _ = d.Reject(true) },
		"the channel closed":         func(_ *testing.T, r *raw, _ *amqp.Delivery) { _ = r.ch.Close() },
	} {
		t.Run(how, func(t *testing.T) {
			r := actual(t)
			if version := r.version; !strings.HasPrefix(version, "3.") {
				t.Skip("the first column is that of servers before 4.3, and this one has " + version)
			}
			queue := r.declare(nil)
			r.put(queue, amqp.Publishing{Body: []byte("b")})
			got := r.take(queue)
			end(t, r, &got)
			again := received(t, open(t, actual(t), queue))
			if again.PriorDeliveries != 1 || again.Crashes != 0 {
				t.Errorf("%d deliveries before, %d crashes", again.PriorDeliveries, again.Crashes)
			}
		})
	}
}

// What a driver cannot work on is refused with the reason.
func TestWrongQueues(t *testing.T) {
	r := actual(t)
	classic := r.declare(amqp.Table{"x-queue-type": "classic"})
	stream := r.declare(amqp.Table{"x-queue-type": "stream"})
	fine := r.declare(amqp.Table{"x-delivery-limit": int32(5)})
	r.declareAs(fine+".retry.5s", nil)
	for queue, want := range map[string]string{
		classic: "is no quorum queue", stream: "is no quorum queue", fine + "-none": "create the queue, or correct its name",
		fine: "is made in another way than it has to be",
	} {
		var stages []broker.Stage
		if queue == fine {
			stages = []broker.Stage{{Channel: "{source}.retry.5s", Delay: 5 * time.Second}}
		}
		_, err := rabbitmq.Open(t.Context(), rabbitmq.Config{Address: r.on(queue), Stages: stages})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("queue %s: %v, want %q", queue, err, want)
		}
	}
}
