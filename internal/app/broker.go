package app

import (
	"context"
	"net/url"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
)

// Channel is the channel that the URL of a broker names.
type Channel struct {
	System string // as in an [nixie.Origin]
	Kind   string // what the broker calls a channel, such as topic
	Name   string // of the topic, mailbox or queue; empty when the URL names none
	Shown  string // the URL without user, password and what concerns the connection
	Group  bool   // a consumer group remembers what was read
	Takes  bool   // what a reader has done is removed
	Spends string // why a record may not be read and given back; empty: it may

	gives   func(ctx context.Context) bool // whether a record may be read and given back all the same; nil: as Spends says
	read    func(ctx context.Context, name string) (broker.Reader, error)
	look    func(ctx context.Context) (broker.Reader, error)
	adopt   func(ctx context.Context, name string) (broker.Reader, error) // nil: as read
	connect func() (Publisher, error)
	suits   func(*Consumption) error
	consume func(context.Context, *Consumption) (broker.Driver, error)
}

// ParseChannel reads the URL of a broker: kafka://host:9092/topic, see [kafka.ParseURL], or
// redis://host:6379/mailbox, see [redis.ParseURL], and with format= the job queue of another
// program, or rabbitmq://host:5672/queue, see [rabbitmq.ParseURL]. It uses user and password when the URL has none.
func ParseChannel(rawURL, user, password string) (Channel, error) {
	switch scheme, _, _ := strings.Cut(rawURL, "://"); scheme {
	case "kafka":
		return parseKafka(rawURL, user, password)
	case "redis", "rediss":
		redis.Quiet()
		if u, err := url.Parse(rawURL); err == nil && u.Query().Has("format") {
			return parseJobQueue(rawURL)
		}
		return parseMailbox(rawURL, user, password)
	case "rabbitmq", "rabbitmqs", "amqp", "amqps":
		return parseRabbitMQ(rawURL, user, password)
	}
	return Channel{}, nixie.Errorf(nixie.CodeInvalid, "broker %q: give a URL like kafka://host:9092/topic, "+
		"redis://host:6379/mailbox or rabbitmq://host:5672/queue",
		Shown(rawURL))
}

// Read opens a reader of the channel. That of a group keeps its position under a name; see
// [kafka.Read].
func (c *Channel) Read(ctx context.Context, name string) (broker.Reader, error) {
	return c.read(ctx, name)
}

// Look opens a reader that takes nothing, and changes and remembers nothing there.
// Errors are of [nixie.CodeInvalid] where the broker cannot do that.
func (c *Channel) Look(ctx context.Context) (broker.Reader, error) {
	if c.Spends != "" {
		return nil, nixie.Errorf(nixie.CodeInvalid, "%s: take the letters in and look at them there: nixie dlq adopt '%s'",
			c.Spends, c.Shown)
	}
	return c.look(ctx)
}

// Gives reports whether records may be read and given back.
func (c *Channel) Gives(ctx context.Context) bool {
	return c.Spends == "" || c.gives != nil && c.gives(ctx)
}

// Adopt opens a reader whose records an office takes in. It may leave a mark there, such as the key
// nixie:server that names a database of a job queue.
func (c *Channel) Adopt(ctx context.Context, name string) (broker.Reader, error) {
	if c.adopt != nil {
		return c.adopt(ctx, name)
	}
	return c.read(ctx, name)
}

// Connect opens a publisher for the broker of the channel. Close ends it.
func (c *Channel) Connect() (Publisher, error) { return c.connect() }

// Publisher is a publisher that can be closed.
type Publisher interface {
	broker.Publisher
	Close()
}
