package rabbitmq

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie/broker"
)

// connection returns the connection for questions, which is made when it is needed.
func (p *Publisher) connection(ctx context.Context) (*amqp.Connection, error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, closedError()
	}
	if p.asked != nil && !p.asked.IsClosed() {
		return p.asked, nil
	}
	var err error
	p.asked, err = p.at.dial(ctx)
	return p.asked, err
}

// Server implements [broker.Located]: the name of the cluster.
func (p *Publisher) Server(ctx context.Context) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	conn, err := p.connection(ctx)
	if err != nil {
		return "", err
	}
	return serverOf(conn), nil
}

// Describe reports which queues exist.
func (p *Publisher) Describe(ctx context.Context, names []string) ([]broker.Channel, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	conn, err := p.connection(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]broker.Channel, len(names))
	for n, name := range names {
		out[n] = broker.Channel{Name: name}
		_, err := look(conn, name)
		switch {
		case err == nil:
		case isCode(err, amqp.NotFound):
			out[n].Missing = true
		case isCode(err, amqp.AccessRefused), isCode(err, amqp.ResourceLocked):
			out[n].Forbidden = true
		default:
			return nil, explain("look at queue "+name, err)
		}
	}
	return out, nil
}

// look asks for a queue, and counts the messages that no consumer has. A queue that is not there
// closes the channel, so each question has one.
func look(conn *amqp.Connection, name string) (messages int, err error) {
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	defer func() { _ = ch.Close() }() // the server may have closed it
	q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	return q.Messages, err
}
