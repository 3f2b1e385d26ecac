package app

import (
	"context"

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
		read:    func(ctx context.Context, _ string) (broker.Reader, error) { return rabbitmq.Read(ctx, a) },
		connect: func() (Publisher, error) { return rabbitmq.Connect(a) },
	}, nil
}
