package cli

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// Stories of RabbitMQ run on a server of their own, as $RABBITMQ.
func TestRabbitMQStories(t *testing.T) {
	server := testservers.OwnRabbitMQ(t)
	scriptsOn(t, "rabbitmq/*", func(env *testscript.Env) (string, error) {
		env.Setenv("RABBITMQ", server.Addr)
		return "sqlite://" + env.WorkDir + "/s.db", nil
	})
}

// useRabbitMQ makes queues, fills them and prints what is in them:
//
//	rabbit make QUEUE          with its dead letter queue, QUEUE.dlq
//	rabbit put QUEUE VALUE…    makes the queue and publishes messages
//	rabbit reject QUEUE VALUE  publishes a message, and rejects it
//	rabbit large QUEUE KIB     puts a message with that much in a header into QUEUE.dlq
//	rabbit show QUEUE          takes what is there, and counts it
func useRabbitMQ(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := amqp.Dial("amqp://guest:guest@" + ts.Getenv("RABBITMQ") + "/")
	ts.Check(err)
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	ts.Check(err)
	queue, dead := args[1], args[1]+".dlq"
	ts.Check(ch.Confirm(false))
	put := func(queue string, m amqp.Publishing) {
		done, err := ch.PublishWithDeferredConfirm("", queue, true, false, m)
		ts.Check(err)
		if !done.Wait() {
			ts.Fatalf("the message was refused")
		}
	}
	count := func(queue string) int {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		ts.Check(err)
		return q.Messages
	}
	switch args[0] {
	case "make":
		for name, more := range map[string]amqp.Table{dead: {}, queue: {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}} {
			more["x-queue-type"] = "quorum"
			_, err := ch.QueueDeclare(name, true, false, false, false, more)
			ts.Check(err)
		}
	case "put":
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
		ts.Check(err)
		for _, value := range args[2:] {
			put(queue, amqp.Publishing{Body: []byte(value)})
		}
	case "reject":
		before := count(dead)
		put(queue, amqp.Publishing{Body: []byte(args[2]), ContentType: "text/plain"})
		d := oneOf(ts, ch, queue)
		ts.Check(d.Reject(false))
		for count(dead) == before { // the server moves it in its own time
		}
	case "large":
		kib := 0
		_, err := fmt.Sscan(args[2], &kib)
		ts.Check(err)
		put(dead, amqp.Publishing{Headers: amqp.Table{"h": string(make([]byte, kib<<10))}})
	case "show":
		if count(queue) == 0 {
			fmt.Fprintln(ts.Stdout(), "nothing")
		}
		for n := count(queue); n > 0; n-- {
			d := oneOf(ts, ch, queue)
			fmt.Fprintf(ts.Stdout(), "%s %s redriven %v\n", d.Body, d.ContentType, d.Headers["x-redrive-count"])
			ts.Check(d.Ack(false))
		}
	}
}

// oneOf waits for a message.
func oneOf(ts *testscript.TestScript, ch *amqp.Channel, queue string) amqp.Delivery {
	for {
		d, ok, err := ch.Get(queue, false)
		ts.Check(err)
		if ok {
			return d
		}
	}
}
