package app

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
)

// Consumption describes the records to receive from a broker.
type Consumption struct {
	URL            string // kafka://host:9092/topic
	User, Password string // used when the URL has none
	Group          string
	Letters        string // template of the channel for letters; empty means none
	Stages         []broker.Stage
	Order          broker.ProcessingOrder
	Office         broker.Adopter // nil means none
	Create         bool           // makes missing channels for stages and letters
	Warn           func(error)    // gets problems that stop no operation
}

// OpenConsumer checks the channels that a consumption needs and joins its group. The caller closes
// the driver.
func OpenConsumer(ctx context.Context, c Consumption) (*broker.Source, broker.Driver, string, error) {
	at, err := kafka.ParseURL(c.URL)
	if err != nil {
		return nil, nil, "", err
	}
	if at.Topic == "" {
		return nil, nil, "",
			nixie.Errorf(nixie.CodeInvalid, "the URL of the broker has no topic: give it as in kafka://localhost:9092/orders")
	}
	at.Login(c.User, c.Password)
	client, err := at.Options()
	if err != nil {
		return nil, nil, "", err
	}
	cfg := kafka.Config{Seeds: at.Seeds, Group: c.Group, Topics: []string{at.Topic}, Stages: c.Stages, Session: at.Session, Client: client}
	if c.Create {
		if err := create(ctx, cfg, c, at.Topic); err != nil {
			return nil, nil, "", err
		}
	}
	d, err := kafka.Open(cfg)
	if err != nil {
		return nil, nil, "", err
	}
	s, err := checked(ctx, d, c, at.Topic)
	if err != nil {
		_ = d.Close(context.WithoutCancel(ctx)) // it has no delivery in hand
		return nil, nil, "", err
	}
	return s, d, at.Topic, nil
}

// create makes the missing topics for stages and letters.
func create(ctx context.Context, cfg kafka.Config, c Consumption, topic string) error {
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

// checked makes a source of a driver and checks it.
func checked(ctx context.Context, d broker.Driver, c Consumption, topic string) (*broker.Source, error) {
	s, err := broker.New(broker.Config{Driver: d, Letters: c.Letters, Office: c.Office, Order: c.Order})
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
