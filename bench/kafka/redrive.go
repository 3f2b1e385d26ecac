package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// died makes a letter of each record, on the topic of letters.
func died(ctx context.Context, c *course) error {
	if err := produce(ctx, c); err != nil {
		return err
	}
	return work(ctx, c, c.group(), broker.Config{Letters: broker.DefaultLetters}, policy.Config{}, 0, nixie.MaxBatch, dies)
}

// diedToOffice makes a letter of each record, in an office.
func diedToOffice(ctx context.Context, c *course) error {
	if err := produce(ctx, c); err != nil {
		return err
	}
	s, err := c.office()
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, c, c.group(), broker.Config{Office: s}, policy.Config{}, 0, nixie.MaxBatch, dies), s.Close())
}

func (c *course) office() (*sqlite.Store, error) {
	return sqlite.Open(filepath.Join(c.Folder, "letters.db"), sqlite.Options{})
}

// redriveTopic moves letters back to the topic that they came from.
func redriveTopic(ctx context.Context, c *course) error {
	from, err := kafka.Read(ctx, kafka.Address{Seeds: []string{c.Seed}, Topic: c.letters()}, c.Topic+"-redrive")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := kafka.Connect(kafka.Address{Seeds: []string{c.Seed}})
	if err != nil {
		return err
	}
	defer to.Close()
	got, err := redrive.Mover{From: from, Destination: redrive.Destination{To: to}}.Run(ctx)
	if err == nil && got.Redriven != int64(c.N) {
		err = fmt.Errorf("%d of %d were redriven", got.Redriven, c.N)
	}
	return err
}

// redriveOffice sends letters of the office to the topic that they came from.
func redriveOffice(ctx context.Context, c *course) (err error) {
	s, err := c.office()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	to, err := kafka.Connect(kafka.Address{Seeds: []string{c.Seed}})
	if err != nil {
		return err
	}
	defer to.Close()
	send, err := redrive.Destination{To: to}.Letters()
	if err != nil {
		return err
	}
	e, err := redrive.New(redrive.Config{Store: s, Send: send})
	if err != nil {
		return err
	}
	op, err := e.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "bench", Reason: "measured"}, nixie.Filter{}, 0)
	if err != nil {
		return err
	}
	got, err := e.Run(ctx, op.ID)
	if err == nil && got.Done != int64(c.N) {
		err = fmt.Errorf("%d of %d were redriven: %v", got.Done, c.N, got.Refused)
	}
	return err
}
