package app

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/rabbitmq"
)

func parseRabbitMQ(rawURL, user, password string) (Channel, error) {
	a, err := rabbitmq.ParseURL(rawURL)
	if err != nil {
		return Channel{}, err
	}
	a.Login(user, password)
	return Channel{
		System: "rabbitmq", Kind: "queue", Name: a.Queue, Shown: a.String(), Takes: true,
		Spends: "RabbitMQ hands out each message that is looked at, and a quorum queue counts that as a delivery: " +
			"it drops a message that has reached its limit",
		gives:   func(ctx context.Context) bool { return a.Queue != "" && rabbitmq.GivesBack(ctx, a) },
		read:    func(ctx context.Context, _ string) (broker.Reader, error) { return rabbitmq.Read(ctx, a) },
		connect: func() (Publisher, error) { return rabbitmq.Connect(a) },
		suits: func(c *Consumption) error {
			if c.Group != "" {
				return nixie.Errorf(nixie.CodeInvalid, "a queue has no groups: leave --group out; all consumers share its messages")
			}
			return nil
		},
		consume: func(ctx context.Context, c *Consumption) (broker.Driver, error) { return openQueue(ctx, a, c) },
	}, nil
}

// openQueue makes the queues of a consumption if that is asked for, and opens the driver.
func openQueue(ctx context.Context, at rabbitmq.Address, c *Consumption) (broker.Driver, error) {
	d, err := rabbitmq.Open(ctx, rabbitmq.Config{Address: at, Stages: c.Stages, Create: c.Create})
	if err != nil || !c.Create || c.Letters == "" {
		return d, err
	}
	if err := d.Create(ctx, broker.ChannelName(c.Letters, at.Queue)); err != nil {
		_ = d.Close(context.WithoutCancel(ctx)) // it has no delivery in hand
		return nil, err
	}
	return d, nil
}
