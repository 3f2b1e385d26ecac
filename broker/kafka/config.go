package kafka

import (
	"cmp"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Config holds the settings of a driver. A zero field takes the default, −1 means none.
type Config struct {
	Seeds  []string // host:port of some brokers; required
	Group  string   // consumer group; required
	Topics []string // to receive from; required

	// Stages are topics where retries wait; {source} stands for the topic that they came from. The
	// topics must exist; [Create] makes them. All members of a group need the same stages.
	Stages []broker.Stage

	CommitEvery time.Duration // shortest time between two commits; default 200 ms
	Grace       time.Duration // how long a revoked partition waits for its records in hand; default 5 s, −1: not at all
	Session     time.Duration // how long the group waits for a member that vanished: 1 s to 30 min, if the broker allows it; default 10 s
	MaxAhead    int           // most records of a partition after its first unfinished one; default 50,000
	FetchBytes  int32         // most bytes of one fetch, unless a single record has more; default 8 MiB

	// Client adds options for security, timeouts and the client ID. The driver overrides options
	// about the group and its commits.
	Client []kgo.Opt

	ctx context.Context // of the clients; tests end it
}

// Defaults and limits.
const (
	DefaultCommitEvery = 200 * time.Millisecond
	DefaultGrace       = 5 * time.Second
	DefaultSession     = 10 * time.Second
	DefaultMaxAhead    = 50_000
	DefaultFetchBytes  = 8 << 20

	callLimit           = 10 * time.Second       // time for a commit
	leaveLimit          = 5 * time.Second        // time to leave for a member that the group has thrown out
	deliveryLimit       = 20 * time.Second       // time for a record to be published
	topicAsked          = 2                      // lookups of a topic before it counts as missing
	partitionFetchBytes = 1 << 20                // of one partition in a fetch
	maxInflated         = 64 << 20               // of a compressed batch that a reader inflates
	fetchAhead          = 50_000                 // records to take from the client, so that it fetches the next ones meanwhile
	largeValue          = 64 << 10               // bytes of a value from which on the driver takes no more than it hands out
	fetchers            = 2                      // fetches at a time
	fetchWait           = 500 * time.Millisecond // the broker holds an empty fetch this long; a resumed partition may have to wait for it
	defaultMaxBytes     = 1_000_012              // largest record of a topic with default settings
	epochMask           = 1<<23 - 1
)

func (c Config) withDefaults() (Config, error) {
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	c.CommitEvery, c.Grace = cmp.Or(c.CommitEvery, DefaultCommitEvery), cmp.Or(c.Grace, DefaultGrace)
	c.Session = cmp.Or(c.Session, DefaultSession)
	c.MaxAhead, c.FetchBytes = cmp.Or(c.MaxAhead, DefaultMaxAhead), cmp.Or(c.FetchBytes, DefaultFetchBytes)
	switch {
	case len(c.Seeds) == 0:
		return c, nixie.Errorf(nixie.CodeInvalid, "kafka has no seeds: name host and port of a broker at least")
	case c.Group == "":
		return c, nixie.Errorf(nixie.CodeInvalid, "kafka has no group: name the consumer group")
	case len(c.Topics) == 0:
		return c, nixie.Errorf(nixie.CodeInvalid, "kafka has no topics: name those to receive from")
	case c.CommitEvery < time.Millisecond || c.CommitEvery > time.Minute:
		return c, nixie.Errorf(nixie.CodeInvalid, "commit every is %s: give a time from 1ms to 1m", c.CommitEvery)
	case c.Grace < 0 && c.Grace != -1 || c.Grace > maxGrace:
		return c, nixie.Errorf(nixie.CodeInvalid, "grace is %s: give a time up to %s, or −1 for none", c.Grace, maxGrace)
	case !validSession(c.Session):
		return c, nixie.Errorf(nixie.CodeInvalid, "session is %s: give a time from %s to %s", c.Session, minSession, maxSession)
	case c.MaxAhead < 1:
		return c, nixie.Errorf(nixie.CodeInvalid, "max ahead is %d: give a positive number", c.MaxAhead)
	case c.FetchBytes < partitionFetchBytes:
		return c, nixie.Errorf(nixie.CodeInvalid, "fetch bytes is %d: give %d at least", c.FetchBytes, partitionFetchBytes)
	}
	return c, broker.CheckStages(c.Stages, len(c.Topics))
}

// stages returns the topics where retries wait.
func (c *Config) stages() map[string]stage {
	all := map[string]stage{}
	for _, source := range c.Topics {
		for _, s := range c.Stages {
			all[s.Of(source)] = stage{s, source}
		}
	}
	return all
}

// Limits of a session; those of brokers are narrower.
const (
	minSession = time.Second
	maxSession = 30 * time.Minute
)

func validSession(session time.Duration) bool { return session >= minSession && session <= maxSession }

// heartbeat returns the interval of heartbeats. The session survives the loss of three.
func (c *Config) heartbeat() time.Duration { return min(c.Session/4, maxHeartbeat) }

const maxHeartbeat = 3 * time.Second

// maxGrace is less than the minute that the group waits for its members.
const maxGrace = 30 * time.Second
