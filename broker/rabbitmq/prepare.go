package rabbitmq

import (
	"context"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
)

// quorum are the arguments of a queue that several members keep.
func quorum() amqp.Table { return amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum} }

// stageArguments are those of a queue where retries of a source wait. The server brings each back
// when its time has come, and keeps it until the source has it.
func stageArguments(source string, delay time.Duration) amqp.Table {
	return amqp.Table{
		amqp.QueueTypeArg: amqp.QueueTypeQuorum, amqp.QueueMessageTTLArg: delay.Milliseconds(),
		"x-dead-letter-exchange": amqp.DefaultExchange, "x-dead-letter-routing-key": source,
		"x-dead-letter-strategy": "at-least-once", amqp.QueueOverflowArg: amqp.QueueOverflowRejectPublish,
	}
}

// prepare makes the queues that are missing, if that is wanted, and refuses those of another kind.
// A stage that is missing is left to [broker.Source.Check].
func (d *Driver) prepare(conn *amqp.Connection) error {
	if err := d.prepareQueue(conn, d.c.Queue, quorum(), true); err != nil {
		return err
	}
	for _, s := range d.c.Stages {
		if err := d.prepareQueue(conn, s.Of(d.c.Queue), stageArguments(d.c.Queue, s.Delay), false); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) prepareQueue(conn *amqp.Connection, name string, args amqp.Table, source bool) error {
	_, err := look(conn, name)
	switch {
	case isCode(err, amqp.NotFound) && d.c.Create:
		return explain("make queue "+name, declare(conn, name, args))
	case isCode(err, amqp.NotFound) && !source:
		return nil
	case err != nil:
		return explain("look at queue "+name, err)
	}
	// AMQP shows no arguments, but a server compares them with those of a declaration.
	err = declare(conn, name, args)
	switch {
	case err == nil, source && isCode(err, amqp.PreconditionFailed) && !strings.Contains(err.Error(), amqp.QueueTypeArg):
		return nil // it is a quorum queue, with arguments of its own
	case source && isCode(err, amqp.PreconditionFailed):
		return notQuorum(name)
	case isCode(err, amqp.PreconditionFailed):
		return nixie.Errorf(nixie.CodeInvalid, "queue %s for retries is made in another way than it has to be: delete it when it is "+
			"empty, and make it by --create: %w", name, err)
	}
	return explain("look at queue "+name, err)
}

func notQuorum(name string) error {
	return nixie.Errorf(nixie.CodeInvalid, "queue %s is no quorum queue: a classic one does not count deliveries, and a stream hands "+
		"none out: move its messages to a quorum queue", name)
}

// declare makes a queue, or finds that it is there with these arguments.
func declare(conn *amqp.Connection, name string, args amqp.Table) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }() // the server may have closed it
	_, err = ch.QueueDeclare(name, true, false, false, false, args)
	return err
}

// Create makes a quorum queue, for letters, if it is not there.
func (p *Publisher) Create(ctx context.Context, name string) error {
	p.asking.Lock()
	defer p.asking.Unlock()
	conn, err := p.connection(ctx)
	if err != nil {
		return err
	}
	if _, err = look(conn, name); isCode(err, amqp.NotFound) {
		err = declare(conn, name, quorum())
	}
	return explain("make queue "+name, err)
}
