package app

import (
	"context"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Consumption describes the records to receive from a broker.
type Consumption struct {
	Group   string
	Letters string // template of the channel for letters; empty means none
	Stages  []broker.Stage
	Order   broker.ProcessingOrder
	Office  broker.Adopter // nil means none
	Create  bool           // makes missing channels for stages and letters, and a missing mailbox
	Profile string         // of the policy; that of mailboxes says how long they keep records
	Limits  broker.Limits  // with which settings of the broker are compared
	Warn    func(error)    // gets problems that stop no operation
}

// Suits refuses a consumption that the channel's broker cannot do. It asks no server.
func (c *Channel) Suits(want *Consumption) error {
	if c.suits == nil {
		return nixie.Errorf(nixie.CodeInvalid, "the URL names a %s: give a topic of Kafka, a mailbox of Redis or a queue of RabbitMQ",
			c.Kind)
	}
	if c.Name == "" {
		host, more, _ := strings.Cut(c.Shown, "?")
		if more != "" {
			more = "?" + more
		}
		return nixie.Errorf(nixie.CodeInvalid, "the URL of the broker has no %s: give it after the host, as in %s/orders%s",
			c.Kind, host, more)
	}
	return c.suits(want)
}

// OpenConsumer checks the channels that a consumption needs and begins to receive. The caller
// closes the driver.
func OpenConsumer(ctx context.Context, from *Channel, want *Consumption) (*broker.Source, broker.Driver, error) {
	if err := from.Suits(want); err != nil {
		return nil, nil, err
	}
	d, err := from.consume(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	s, err := checked(ctx, d, want, from.Name)
	if err != nil {
		_ = d.Close(context.WithoutCancel(ctx)) // it has no delivery in hand
		return nil, nil, err
	}
	return s, d, nil
}

// checked makes a source of a driver and checks it.
func checked(ctx context.Context, d broker.Driver, c *Consumption, topic string) (*broker.Source, error) {
	s, err := broker.New(broker.Config{Driver: d, Letters: c.Letters, Office: c.Office, Order: c.Order, Limits: c.Limits})
	if err != nil {
		return nil, err
	}
	found, err := s.Check(ctx, []string{topic})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if !f.Refused {
			c.Warn(nixie.Errorf(nixie.CodeInvalid, "%s (%s)", f.Text, f.Name))
		}
	}
	return s, broker.FirstRefused(found)
}
