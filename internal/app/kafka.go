package app

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
)

// Consumption is what is to be received from a broker.
type Consumption struct {
	URL            string // kafka://host:9092/topic
	User, Password string // where the URL has none
	Group          string
	Letters        string // template of the channel that takes letters; empty: none
	Stages         []broker.Stage
	Order          broker.ProcessingOrder
	Office         broker.Adopter // nil: none
	Create         bool           // stages and the channel of letters are made where they are missing
	Warn           func(error)    // is told what is wrong and hinders nobody
}

// OpenConsumer joins the group that a consumption names, once the channels that it
// needs are there and fit for it. The driver is closed by the caller.
func OpenConsumer(ctx context.Context, c Consumption) (*broker.Source, broker.Driver, string, error) {
	at, err := kafka.ParseURL(c.URL)
	if err != nil {
		return nil, nil, "", err
	}
	if at.Topic == "" {
		return nil, nil, "", nixie.Errorf(nixie.CodeInvalid, "the URL of the broker has no topic: give it as in kafka://localhost:9092/orders")
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
		_ = d.Close(context.WithoutCancel(ctx)) // it has nothing in hand
		return nil, nil, "", err
	}
	return s, d, at.Topic, nil
}

// create makes what is missing of the topics that are written to.
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

// checked makes a source of a driver, if nothing speaks against it.
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
