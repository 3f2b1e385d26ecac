// Package foreign reads the dead jobs of other job queues that keep them in Redis, and puts a job
// back into its own queue. A format names a job queue: sidekiq, asynq, bullmq, rq, dramatiq or
// celery.
//
// Reading claims and changes nothing. A dead job becomes a record whose headers are those of
// letters of package broker, so an office adopts it like a record of any broker. Its body is the
// part of the job that its system stores and an operator wants to see. What a system does not keep
// is absent. A job that is damaged becomes a record too, with what can be read of it.
package foreign

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
)

// Config chooses a job queue. The zero Prefix is the usual one of the format.
type Config struct {
	Format string // one of [Formats]
	Prefix string // of the keys in Redis, without the colon after it
	Retry  bool   // Sidekiq only: read the set retry too, whose jobs Sidekiq itself tries again
	Adopts bool   // an office takes the jobs in: give the database a name, the key nixie:server, if it has none

	Clock func() time.Time // default time.Now
}

// system knows how one job queue keeps its jobs.
type system interface {
	// sets finds the sets of dead jobs.
	sets(ctx context.Context, c redis.UniversalClient) ([]deadSet, error)
	// read reads the jobs of some entries of a set, in their order.
	read(ctx context.Context, c redis.UniversalClient, set deadSet, entries []redis.Z) ([]job, error)
	// lay tells where a job lay, and its member there; empty: all of its score may be it.
	lay(r *returning) (set deadSet, member string)
	// back tells how a job goes back into its queue, or enters that of another site.
	back(ctx context.Context, c redis.UniversalClient, r *returning) (call, error)
}

// deadSet names a set of dead jobs. If its queue is empty, each job names its own.
type deadSet struct {
	key, queue string
	pattern    string // if set, there is no set: all keys that match are the entries
	pass       int    // 1 and 2: each some of the jobs; 0: all
}

// formats are the known job queues.
var formats = []struct {
	name, prefix string
	make         func(Config) system
}{
	{"sidekiq", "", newSidekiq}, {"asynq", "asynq", newAsynq}, {"bullmq", "bull", newBullMQ}, {"rq", "rq", newRQ},
	{"dramatiq", "dramatiq", newDramatiq}, {"celery", "", newCelery},
}

// Formats lists the names of the known job queues.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// system returns the system of a config, which is complete afterwards.
func (c *Config) system() (system, error) {
	if c.Retry && c.Format != "sidekiq" {
		return nil, nixie.Errorf(nixie.CodeInvalid, "retry is for sidekiq: leave it out for %s", c.Format)
	}
	if err := nixie.CheckName("prefix", c.Prefix); err != nil {
		return nil, err
	}
	for _, f := range formats {
		if f.name == c.Format {
			if c.Prefix == "" {
				c.Prefix = f.prefix
			}
			return f.make(*c), nil
		}
	}
	return nil, nixie.Errorf(nixie.CodeInvalid, "format of the job queue is %q: give one of %q", c.Format, Formats())
}

// Check refuses a config that names no known job queue.
func (c Config) Check() error {
	_, err := c.system()
	return err
}

// keys makes the names of keys.
type keys string

// of returns the key of a name: the name after the prefix and a colon, or alone without a prefix.
func (k keys) of(name string) string {
	if k == "" {
		return name
	}
	return string(k) + ":" + name
}

// named finds the sets whose keys begin and end with texts; the middle is the queue.
func (k keys) named(ctx context.Context, c redis.UniversalClient, begin, end string) ([]deadSet, error) {
	begin = k.of(begin)
	var all []deadSet
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		var found []string
		var err error
		if found, cursor, err = c.ScanType(ctx, cursor, escaped(begin)+"*"+escaped(end), scanCount, "zset").Result(); err != nil {
			return nil, readError("keys", err)
		}
		for _, key := range found {
			if len(key) > len(begin)+len(end) {
				all = append(all, deadSet{key: key, queue: key[len(begin) : len(key)-len(end)]})
			}
		}
	}
	slices.SortFunc(all, func(a, b deadSet) int { return cmp.Compare(a.key, b.key) })
	return slices.Compact(all), nil
}

// scanCount is about the number of keys or entries that one command of Redis looks at.
const scanCount = 1000
