package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Config of a driver. Zero fields mean the default, −1 none.
type Config struct {
	Seeds  []string // host:port of some brokers; required
	Group  string   // consumer group; required
	Topics []string // to receive from; required

	// Stages are topics on which retries wait; {source} stands for the topic that
	// they came from. They are there already, or [Create] makes them. Members
	// of one group have the same ones.
	Stages []broker.Stage

	CommitEvery time.Duration // what is done is told the group no more often; default 200 ms
	Grace       time.Duration // how long a partition that is to go waits for what is in hand of it; default 5 s, −1 not at all
	Session     time.Duration // how long the group waits for a member that vanished, 1 s to 30 min, within the broker's own bounds; default 10 s
	MaxAhead    int           // records of a partition beyond its first unfinished one; default 50,000
	FetchBytes  int32         // most that one fetch brings, unless a single record has more; default 8 MiB

	// Client has further options of the client: security, timeouts, client ID. Those
	// about the group and its commits are set by the driver and stay.
	Client []kgo.Opt

	life context.Context // of the clients; tests end it
}

// Defaults and bounds.
const (
	DefaultCommitEvery = 200 * time.Millisecond
	DefaultGrace       = 5 * time.Second
	DefaultSession     = 10 * time.Second
	DefaultMaxAhead    = 50_000
	DefaultFetchBytes  = 8 << 20

	callLimit     = 10 * time.Second       // for a commit
	leaveLimit    = 5 * time.Second        // for a member that was thrown out to end
	deliveryLimit = 20 * time.Second       // for a record that is published
	topicAsked    = 2                      // times that a topic is looked for before it counts as missing
	partBytes     = 1 << 20                // of one partition in a fetch
	surplus       = 50_000                 // records that are taken over from the client, so that it fetches the next ones meanwhile
	largeRecord   = 64 << 10               // bytes of a record from which on none are
	fetchers      = 2                      // fetches at a time
	fetchWait     = 500 * time.Millisecond // of a fetch that brings nothing: so long a partition that goes on may wait for it
	usualBytes    = 1_000_012              // largest record that a topic takes unless it is set otherwise
	epochMask     = 1<<23 - 1
)

func (c Config) withDefaults() (Config, error) {
	if c.life == nil {
		c.life = context.Background()
	}
	if c.CommitEvery == 0 {
		c.CommitEvery = DefaultCommitEvery
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.Session == 0 {
		c.Session = DefaultSession
	}
	if c.MaxAhead == 0 {
		c.MaxAhead = DefaultMaxAhead
	}
	if c.FetchBytes == 0 {
		c.FetchBytes = DefaultFetchBytes
	}
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
	case !sound(c.Session):
		return c, nixie.Errorf(nixie.CodeInvalid, "session is %s: give a time from %s to %s", c.Session, minSession, maxSession)
	case c.MaxAhead < 1:
		return c, nixie.Errorf(nixie.CodeInvalid, "max ahead is %d: give a positive number", c.MaxAhead)
	case c.FetchBytes < partBytes:
		return c, nixie.Errorf(nixie.CodeInvalid, "fetch bytes is %d: give %d at least", c.FetchBytes, partBytes)
	}
	return c, broker.CheckStages(c.Stages, len(c.Topics))
}

// stages lists the topics on which retries wait.
func (c *Config) stages() map[string]stage {
	all := map[string]stage{}
	for _, source := range c.Topics {
		for _, s := range c.Stages {
			all[s.Of(source)] = stage{s, source}
		}
	}
	return all
}

// Bounds of a session: those that brokers have are narrower.
const (
	minSession = time.Second
	maxSession = 30 * time.Minute
)

func sound(session time.Duration) bool { return session >= minSession && session <= maxSession }

// heartbeat is how often a member is heard of. Three may be lost.
func (c *Config) heartbeat() time.Duration { return min(c.Session/4, usualHeartbeat) }

const usualHeartbeat = 3 * time.Second

// maxGrace stays below the minute that the group waits for its members.
const maxGrace = 30 * time.Second
