package app

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/broker/redis/foreign"
)

// JobQueue is the Kind of a [Channel] whose dead jobs another program left.
const JobQueue = "job queue"

// parseJobQueue reads the URL of a job queue in Redis: redis://host:6379/0?format=sidekiq, whose
// path is the number of the database.
//
//	format    one of [foreign.Formats]
//	prefix    of the keys; default the usual one of the format
//	retry     true: of sidekiq, read the set retry too
//
// The other parameters are those of [redis.ParseURL].
func parseJobQueue(rawURL string) (Channel, error) {
	base, query, _ := strings.Cut(rawURL, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Channel{}, nixie.Errorf(nixie.CodeInvalid, "parameters of redis: %w", err)
	}
	c := foreign.Config{Format: values.Get("format"), Prefix: values.Get("prefix"), Retry: values.Get("retry") == "true"}
	if err := c.Check(); err != nil {
		return Channel{}, err
	}
	shown := url.Values{"format": {c.Format}}
	if c.Prefix != "" {
		shown.Set("prefix", c.Prefix)
	}
	for _, name := range [...]string{"format", "prefix", "retry"} {
		values.Del(name)
	}
	a, err := redis.ParseURL(base + "?" + values.Encode())
	if err != nil {
		return Channel{}, err
	}
	if a.Mailbox != "" {
		if a.DB, err = strconv.Atoi(a.Mailbox); err != nil || a.DB < 0 {
			return Channel{}, nixie.Errorf(nixie.CodeInvalid, "database of the job queue is %q: give its number after the host", a.Mailbox)
		}
	}
	if a.Cluster {
		return Channel{}, nixie.Errorf(nixie.CodeInvalid, "a job queue in a cluster cannot be read: name a single server")
	}
	a.Mailbox = strconv.Itoa(a.DB)
	open := func(c foreign.Config) func(context.Context, string) (broker.Reader, error) {
		return func(ctx context.Context, _ string) (broker.Reader, error) {
			client, err := a.Client()
			if err != nil {
				return nil, err
			}
			r, err := foreign.Open(ctx, client, c)
			if err != nil {
				_ = client.Close() // it only asked
				return nil, err
			}
			return r, nil
		}
	}
	adopting := c
	adopting.Adopts = true
	return Channel{
		System: c.Format, Kind: JobQueue, Shown: a.String() + "?" + shown.Encode(), read: open(c), adopt: open(adopting),
		look: func(ctx context.Context) (broker.Reader, error) { return open(c)(ctx, "") },
		connect: func() (Publisher, error) {
			client, err := a.Client()
			if err != nil {
				return nil, err
			}
			return foreign.NewPublisher(client, c)
		},
	}, nil
}

// WayBack returns a URL like that of the broker from which messages of a system came; "" if they
// came from none.
func WayBack(system string) string {
	switch {
	case system == "kafka":
		return "kafka://HOST"
	case system == "redis", system == "rabbitmq":
		return system + "://HOST"
	case slices.Contains(foreign.Formats(), system):
		return "'redis://HOST/DB?format=" + system + "'"
	}
	return ""
}
