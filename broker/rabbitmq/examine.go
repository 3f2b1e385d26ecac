package rabbitmq

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// usualTimeout is consumer_timeout of a server that was told none.
const usualTimeout = 30 * time.Minute

// Examine compares the settings of the queue with what its consumer will do: whether the server
// would end, drop or lose a message before that. It implements [broker.Examiner].
func (d *Driver) Examine(ctx context.Context, letters []string, limits broker.Limits) ([]broker.Problem, error) {
	may, err := d.mayWrite(ctx)
	if err != nil {
		return nil, err
	}
	if !may {
		return []broker.Problem{{Name: "forbidden-exchange", Refused: true, Text: "the user may not write to the default exchange, " +
			"by which letters and retries go: grant it the right to write to amq.default in the vhost"}}, nil
	}
	m, err := newManager(&d.c.Address)
	if err != nil {
		return nil, err
	}
	defer m.close()
	found, err := m.queue(ctx, d.c.Queue)
	if err != nil && m.named || ctx.Err() != nil {
		return nil, nixie.Errorf(nixie.CodeUnavailable, "look at the settings of queue %s: %w", d.c.Queue, err)
	}
	e := examination{d: d, m: m, queue: d.c.Queue, limits: limits, known: found != nil}
	if !e.known {
		found = &settings{Type: amqp.QueueTypeQuorum}
		e.unknown(err)
	}
	if err := e.source(ctx, found); err != nil {
		return nil, err
	}
	for _, name := range letters {
		if !e.known {
			break
		}
		if err := e.letters(ctx, name); err != nil {
			return nil, err
		}
	}
	return e.problems, nil
}

// mayWrite asks whether the user may publish to the default exchange, by which letters and retries
// go: a message that no queue takes comes back.
func (d *Driver) mayWrite(ctx context.Context) (may bool, err error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	conn, err := d.connection(ctx)
	if err != nil {
		return false, err
	}
	ch, err := channel(conn)
	if err != nil {
		return false, err
	}
	defer func() { _ = ch.Close() }() // the server may have closed it
	if err := ch.Confirm(false); err != nil {
		return false, explain("ask for the rights of the user", err)
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	sent, err := ch.PublishWithDeferredConfirmWithContext(ctx, amqp.DefaultExchange, rand.Text(), false, false, amqp.Publishing{})
	if err != nil {
		return false, explain("ask for the rights of the user", err)
	}
	select {
	case <-sent.Done():
		return true, nil
	case said := <-closed:
		if said != nil && said.Code == amqp.AccessRefused {
			return false, nil
		}
		return false, explain("ask for the rights of the user", amqp.ErrClosed)
	case <-ctx.Done():
		return false, nixie.Errorf(nixie.CodeUnavailable, "ask for the rights of the user: %w", ctx.Err())
	}
}

// examination collects what is unfit about a queue.
type examination struct {
	d        *Driver
	m        *manager
	queue    string
	limits   broker.Limits
	known    bool // the management API told the settings
	problems []broker.Problem
}

func (e *examination) warn(name, format string, args ...any) {
	e.problems = append(e.problems, broker.Problem{Name: name, Text: fmt.Sprintf(format, args...)})
}

// unknown says which settings are not known, and what is supposed of them.
func (e *examination) unknown(err error) {
	why := "it does not show the queue"
	if err != nil {
		why = err.Error()
	}
	e.warn("settings-not-known", "delivery-limit (taken for %d), message-ttl, overflow, dead-letter-* and consumer-timeout of queue %s "+
		"are not known: %s: name the management API in the URL, as in management=http://HOST:15672", usualLimit, e.queue, why)
}

// source examines the queue that is consumed.
func (e *examination) source(ctx context.Context, s *settings) error {
	ends := e.deliveryLimit(s)
	ttl, dies := s.number("message-ttl")
	if age := time.Duration(ttl) * time.Millisecond; dies && (e.limits.Age <= 0 || age < e.limits.Age) {
		ends = append(ends, fmt.Sprintf("after %s in the queue (message-ttl)", age))
	}
	if full := e.overflow(s); full != "" {
		ends = append(ends, full)
	}
	if after, is := s.number("expires"); is {
		e.warn("queue-expires", "queue %s is deleted with its messages when nothing uses it for %s (expires): make one without it",
			e.queue, time.Duration(after)*time.Millisecond)
	}
	e.consumerTimeout(s)
	if !e.known || len(ends) == 0 {
		return nil
	}
	return e.deadLetters(ctx, s, strings.Join(ends, " and "))
}

// deliveryLimit compares when the server ends a message with when it is poison here.
func (e *examination) deliveryLimit(s *settings) (ends []string) {
	limit, has := s.deliveryLimit(e.d.version, e.known)
	if !has || e.limits.Deliveries > 0 && limit >= e.limits.Deliveries {
		return nil
	}
	e.warn("delivery-limit", "the server ends a message of queue %s after %d deliveries (delivery-limit), and max_deliveries here is %s: "+
		"raise the one or lower the other, so that a poison message becomes a letter", e.queue, limit, orNone(e.limits.Deliveries))
	return []string{fmt.Sprintf("after %d deliveries (delivery-limit)", limit)}
}

func orNone(n int) string {
	if n <= 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// overflow tells when a queue drops messages because there are too many.
func (e *examination) overflow(s *settings) string {
	for _, name := range [...]string{"max-length", "max-length-bytes"} {
		most, is := s.number(name)
		if way, _ := s.text("overflow"); is && !strings.HasPrefix(way, "reject-publish") {
			return fmt.Sprintf("when more than %d are there (%s: set overflow to reject-publish)", most, name)
		}
	}
	return ""
}

// consumerTimeout compares how long a message may be in hand.
func (e *examination) consumerTimeout(s *settings) {
	limit := usualTimeout
	ms, told := s.number("consumer-timeout")
	if told {
		limit = time.Duration(ms) * time.Millisecond
	}
	hold, why := e.limits.Attempt, "--timeout"
	if len(e.d.c.Stages) == 0 && e.limits.Wait > 0 && hold > 0 && e.limits.Wait > hold {
		hold, why = e.limits.Wait, "the longest wait of a retry, which is in hand without --retry"
	}
	switch {
	case hold > 0 && hold < limit:
	case hold <= 0 && !told: // most handlers are far from the usual limit
	case hold <= 0:
		e.warn("consumer-timeout", "the server takes the messages of a consumer away that has one for %s (consumer-timeout of queue %s), "+
			"and an execution has no limit: set --timeout below it", limit, e.queue)
	default:
		e.warn("consumer-timeout", "the server takes the messages of a consumer away that has one for %s (consumer-timeout), "+
			"and %s is %s: set that below it, or raise consumer-timeout of queue %s", limit, why, hold, e.queue)
	}
}

// deadLetters examines where the messages go that the server ends itself.
func (e *examination) deadLetters(ctx context.Context, s *settings, ends string) error {
	exchange, is := s.text("dead-letter-exchange")
	if !is {
		e.warn("no-dead-letter-exchange", "the server drops a message of queue %s %s: set a dead-letter-exchange, or remove that limit",
			e.queue, ends)
		return nil
	}
	if way, _ := s.text("dead-letter-strategy"); s.Type == amqp.QueueTypeQuorum && way != "at-least-once" {
		e.warn("dead-letter-strategy", "the server takes a message off queue %s %s, and may lose it on the way to exchange %q: set "+
			"dead-letter-strategy to at-least-once, and overflow to reject-publish", e.queue, ends, exchange)
	}
	if exchange != amqp.DefaultExchange {
		return nil // its bindings decide
	}
	key, is := s.text("dead-letter-routing-key")
	if !is {
		key = e.queue
	}
	target, err := e.m.queue(ctx, key)
	if err == nil && target == nil {
		e.warn("no-dead-letter-queue", "the server takes a message off queue %s %s, and drops it, as queue %s is not there: make it",
			e.queue, ends, key)
	}
	return err
}

// letters examines a queue for letters.
func (e *examination) letters(ctx context.Context, name string) error {
	s, err := e.m.queue(ctx, name)
	if err != nil || s == nil { // what is missing is told by [broker.Source.Check]
		return err
	}
	for _, limit := range [...]struct{ name, does string }{
		{"message-ttl", "ends letters after %s"}, {"expires", "is deleted when nothing uses it for %s"},
	} {
		if ms, is := s.number(limit.name); is {
			e.warn("short-retention", "queue %s "+limit.does+" (%s): remove that limit", name, time.Duration(ms)*time.Millisecond,
				limit.name)
		}
	}
	if full := (&examination{}).overflow(s); full != "" {
		e.warn("full-letters", "queue %s drops its oldest letters %s", name, full)
	}
	if s.Type == amqp.QueueTypeClassic {
		e.warn("not-durable", "queue %s for letters is a classic queue, which one machine has: make a quorum queue", name)
	}
	return nil
}
