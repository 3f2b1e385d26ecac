package app

import (
	"context"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
)

func parseMailbox(rawURL, user, password string) (Channel, error) {
	a, err := redis.ParseURL(rawURL)
	if err != nil {
		return Channel{}, err
	}
	if _, err := strconv.Atoi(a.Mailbox); err == nil {
		return Channel{}, nixie.Errorf(nixie.CodeInvalid,
			"broker %q: a number is no mailbox; name the job queue whose dead jobs lie there, format=sidekiq for example, "+
				"or a mailbox, as in /orders?db=%s", Shown(rawURL), a.Mailbox)
	}
	a.Login(user, password)
	return Channel{
		System: "redis", Kind: "mailbox", Name: a.Mailbox, Shown: a.String(), Takes: true,
		read:    func(ctx context.Context, _ string) (broker.Reader, error) { return redis.Read(ctx, a) },
		look:    func(ctx context.Context) (broker.Reader, error) { return redis.Look(ctx, a) },
		connect: func() (Publisher, error) { return redis.Connect(a) },
		suits:   func(c *Consumption) error { return suitsMailbox(a.Mailbox, c) },
		consume: func(ctx context.Context, c *Consumption) (broker.Driver, error) { return openMailbox(ctx, a, c) },
	}, nil
}

func suitsMailbox(name string, c *Consumption) error {
	switch {
	case c.Group != "":
		return nixie.Errorf(nixie.CodeInvalid, "a mailbox has no groups: leave --group out; all consumers share its records")
	case len(c.Stages) > 0:
		return nixie.Errorf(nixie.CodeInvalid, "a mailbox delays retries itself: leave --retry out, and give the delays by --backoff")
	}
	return redis.CheckName(name)
}

// How long mailboxes of profile wink keep records.
const (
	winkRecords = 3 * 24 * time.Hour
	winkLetters = 30 * 24 * time.Hour
)

// openMailbox makes the mailboxes of a consumption if that is asked for, and opens the driver.
func openMailbox(ctx context.Context, at redis.Address, c *Consumption) (broker.Driver, error) {
	cfg := redis.Config{Address: at, MustExist: !c.Create, Warn: c.Warn}
	var letters *redis.Retention
	if c.Profile == "wink" {
		cfg.Retention, letters = &redis.Retention{Keep: winkRecords}, &redis.Retention{Keep: winkLetters, Drop: true}
	}
	d, err := redis.Open(ctx, cfg)
	if err != nil || !c.Create || c.Letters == "" {
		return d, err
	}
	if err := d.Create(ctx, broker.ChannelName(c.Letters, at.Mailbox), letters); err != nil {
		_ = d.Close(context.WithoutCancel(ctx)) // it has no delivery in hand
		return nil, err
	}
	return d, nil
}

// Mailbox opens the mailbox of the channel, which has to exist.
func (c *Channel) Mailbox(ctx context.Context) (broker.Driver, error) {
	if c.Kind != "mailbox" {
		return nil, c.noMailbox()
	}
	return c.consume(ctx, &Consumption{})
}

func (c *Channel) noMailbox() error {
	return nixie.Errorf(nixie.CodeInvalid, "%s has no mailboxes: give a URL like redis://host:6379/orders", c.Shown)
}

// Mailboxes administers the mailboxes of a server; see [redis.Publisher].
type Mailboxes = redis.Publisher

// Mailboxes connects to the server of the channel. Close of the result ends it.
func (c *Channel) Mailboxes() (*Mailboxes, error) {
	to, err := c.connect()
	if err != nil {
		return nil, err
	}
	if m, ok := to.(*Mailboxes); ok {
		return m, nil
	}
	to.Close()
	return nil, c.noMailbox()
}
