package app

import (
	"context"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
)

// Channel is the channel that the URL of a broker names.
type Channel struct {
	System string // as in an [nixie.Origin]
	Name   string // of the topic; empty when the URL names none
	Shown  string // the URL without user, password and what concerns the connection
	Group  bool   // a consumer group remembers what was read

	read    func(ctx context.Context, name string) (broker.Reader, error)
	connect func() (Publisher, error)
}

// ParseChannel reads the URL of a broker: kafka://host:9092/topic, see [kafka.ParseURL], or
// redis://host:6379/0?format=sidekiq. It uses user and password when the URL of Kafka has none.
func ParseChannel(rawURL, user, password string) (Channel, error) {
	switch scheme, _, _ := strings.Cut(rawURL, "://"); scheme {
	case "kafka":
		return parseKafka(rawURL, user, password)
	case "redis", "rediss":
		return parseJobQueue(rawURL)
	}
	return Channel{}, nixie.Errorf(nixie.CodeInvalid, "broker %q: give a URL like kafka://host:9092/topic", Shown(rawURL))
}

func parseKafka(rawURL, user, password string) (Channel, error) {
	a, err := kafka.ParseURL(rawURL)
	if err != nil {
		return Channel{}, err
	}
	a.Login(user, password)
	return Channel{
		System: "kafka", Name: a.Topic, Shown: a.String(), Group: true,
		read:    func(ctx context.Context, name string) (broker.Reader, error) { return kafka.Read(ctx, a, name) },
		connect: func() (Publisher, error) { return kafka.Connect(a) },
	}, nil
}

// Read opens a reader of the channel, which keeps its position under a name; see [kafka.Read].
func (c *Channel) Read(ctx context.Context, name string) (broker.Reader, error) {
	return c.read(ctx, name)
}

// Connect opens a publisher for the broker of the channel. Close ends it.
func (c *Channel) Connect() (Publisher, error) { return c.connect() }

// Publisher is a publisher that can be closed.
type Publisher interface {
	broker.Publisher
	Close()
}
