package rabbitmq_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie/broker/rabbitmq"
	"github.com/nixie-go/nixie/internal/cli"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// server is the RabbitMQ of this package's tests.
var server testservers.RabbitMQ

// A child of these tests is the program itself.
func TestMain(m *testing.M) {
	if args, is := child.Main(); is {
		os.Exit(cli.Main(args, cli.System()))
	}
	os.Exit(testservers.WithRabbitMQ(m.Run, &server))
}

const testTimeout = time.Minute

func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// queues numbers the queues of tests, so that their names differ.
var queues atomic.Int64

// raw is a connection of the plain client to a server, for what other programs do.
type raw struct {
	t       testing.TB
	at      rabbitmq.Address
	conn    *amqp.Connection
	ch      *amqp.Channel
	version string
}

func connect(t testing.TB, addr string) *raw {
	t.Helper()
	conn, err := amqp.Dial("amqp://guest:guest@" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	version, _ := conn.Properties["version"].(string)
	return &raw{t, rabbitmq.Address{Hosts: []string{addr}, VHost: "/"}, conn, ch, version}
}

func actual(t testing.TB) *raw {
	t.Helper()
	server.Need(t)
	return connect(t, server.Addr)
}

// declare makes a quorum queue with a name of its own, and with more arguments.
func (r *raw) declare(args amqp.Table) string {
	r.t.Helper()
	name := r.name()
	r.declareAs(name, args)
	return name
}

// name returns one that no other queue has.
func (r *raw) name() string { return fmt.Sprintf("t%d-%d", os.Getpid(), queues.Add(1)) }

func (r *raw) declareAs(name string, args amqp.Table) {
	r.t.Helper()
	all := amqp.Table{"x-queue-type": "quorum"}
	for key, value := range args {
		all[key] = value
	}
	if _, err := r.ch.QueueDeclare(name, true, false, false, false, all); err != nil {
		r.t.Fatal(err)
	}
}

// put publishes a message, and waits until the server has it.
func (r *raw) put(queue string, m amqp.Publishing) {
	r.t.Helper()
	done, err := r.ch.PublishWithDeferredConfirm("", queue, true, false, m)
	if err != nil {
		r.t.Fatal(err)
	}
	if ok, err := done.WaitContext(limited(r.t)); !ok || err != nil {
		r.t.Fatal("not confirmed:", ok, err)
	}
}

// take waits for a message.
func (r *raw) take(queue string) amqp.Delivery {
	r.t.Helper()
	var got amqp.Delivery
	r.until("a message on "+queue, func() bool {
		d, ok, err := r.ch.Get(queue, false)
		if err != nil {
			r.t.Fatal(err)
		}
		got = d
		return ok
	})
	return got
}

// ready counts the messages that no consumer has.
func (r *raw) ready(queue string) int {
	r.t.Helper()
	q, err := r.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return q.Messages
}

func (r *raw) until(what string, is func() bool) {
	r.t.Helper()
	ctx := limited(r.t)
	try := time.NewTicker(2 * time.Millisecond)
	defer try.Stop()
	for !is() {
		select {
		case <-try.C:
		case <-ctx.Done():
			r.t.Fatalf("%s did not come in time", what)
		}
	}
}

// on returns the address of a queue.
func (r *raw) on(queue string) rabbitmq.Address {
	at := r.at
	at.Queue = queue
	return at
}

func (r *raw) url(queue string) string { return r.on(queue).String() }
