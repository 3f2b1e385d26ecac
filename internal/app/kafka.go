package app

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
)

func parseKafka(rawURL, user, password string) (Channel, error) {
	a, err := kafka.ParseURL(rawURL)
	if err != nil {
		return Channel{}, err
	}
	a.Login(user, password)
	return Channel{
		System: "kafka", Kind: "topic", Name: a.Topic, Shown: a.String(), Group: true,
		read:    func(ctx context.Context, name string) (broker.Reader, error) { return kafka.Read(ctx, a, name) },
		look:    func(ctx context.Context) (broker.Reader, error) { return kafka.Read(ctx, a, "") },
		connect: func() (Publisher, error) { return kafka.Connect(a) },
		suits: func(c *Consumption) error {
			if c.Group == "" {
				return nixie.Errorf(nixie.CodeInvalid, "no group: give --group NAME, under which the broker remembers what is done")
			}
			return nil
		},
		consume: func(ctx context.Context, c *Consumption) (broker.Driver, error) { return openKafka(ctx, a, c) },
	}, nil
}

// openKafka joins the group of a consumption.
func openKafka(ctx context.Context, at kafka.Address, c *Consumption) (broker.Driver, error) {
	client, err := at.Options()
	if err != nil {
		return nil, err
	}
	cfg := kafka.Config{Seeds: at.Seeds, Group: c.Group, Topics: []string{at.Topic}, Stages: c.Stages, Session: at.Session, Client: client}
	if c.Create {
		if err := create(ctx, cfg, c, at.Topic); err != nil {
			return nil, err
		}
	}
	return kafka.Open(cfg)
}

// create makes the missing topics for stages and letters.
func create(ctx context.Context, cfg kafka.Config, c *Consumption, topic string) error {
	var names []string
	for _, stage := range c.Stages {
		names = append(names, stage.Of(topic))
	}
	if c.Letters != "" {
		names = append(names, broker.Stage{Channel: c.Letters}.Of(topic))
	}
	if len(names) == 0 {
		return nil
	}
	_, err := kafka.Create(ctx, cfg, topic, slices.Compact(names)...)
	return err
}
