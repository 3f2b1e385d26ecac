package foreign

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Reader reads the dead jobs of a job queue and claims none. It remembers nothing: an office knows
// the jobs that it has. A job that dies while it reads may come or not; a job may come twice.
type Reader struct {
	client redis.UniversalClient
	format string
	system system
	site   broker.Site
	sets   []deadSet // still to read, the first of them from cursor on
	cursor uint64
	began  bool
	ready  []job // of the first set
	left   int64
}

var _ broker.Reader = (*Reader)(nil)

// Open finds the sets of dead jobs. Close of the reader closes the client, which must not repeat
// commands.
func Open(ctx context.Context, client redis.UniversalClient, c Config) (*Reader, error) {
	s, err := c.system()
	if err != nil {
		return nil, err
	}
	r := &Reader{client: client, format: c.Format, system: s}
	if r.site, err = c.site(ctx, client); err != nil {
		return nil, err
	}
	if r.sets, err = s.sets(ctx, client); err != nil {
		return nil, err
	}
	for _, set := range r.sets {
		if set.pattern != "" {
			continue // Redis cannot count them without reading all keys
		}
		n, err := client.ZCard(ctx, set.key).Result()
		if err != nil {
			return nil, readError(set.key, err)
		}
		r.left += n
	}
	return r, nil
}

// maxPageBytes bounds the bodies of one call of Next, unless a single command brings more.
const maxPageBytes = 8 << 20

// Next implements [broker.Reader]. It inflates 64 MiB at most: a job that would need more begins
// the next page. One job cannot: each of its few texts is left out beyond 4 MiB.
func (r *Reader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	for len(r.ready) == 0 && len(r.sets) > 0 {
		if err := r.fetch(ctx); err != nil {
			return nil, err
		}
	}
	var out []broker.Record
	in := inflater{left: maxPage}
	for size := 0; len(r.ready) > 0 && len(out) < most && size < maxPageBytes; {
		j := &r.ready[0]
		if j.unpack != nil {
			j.unpack(j, &in)
		}
		if in.full {
			break
		}
		size += len(j.body)
		out = append(out, j.record(r.format, r.sets[0], r.site))
		r.ready[0], r.ready = job{}, r.ready[1:]
	}
	r.left = max(r.left-int64(len(out)), 0)
	return out, nil
}

// fetch reads the next entries of the first set with their jobs.
func (r *Reader) fetch(ctx context.Context) error {
	set := r.sets[0]
	if r.began && r.cursor == 0 {
		r.sets, r.began = r.sets[1:], false
		return nil
	}
	r.began = true
	entries, cursor, err := scan(ctx, r.client, set, r.cursor)
	if err != nil {
		return readError(set.key, err)
	}
	r.cursor = cursor
	for len(entries) > 0 {
		n := min(len(entries), readAtOnce)
		jobs, err := r.system.read(ctx, r.client, set, entries[:n])
		if err != nil {
			return err
		}
		entries, r.ready = entries[n:], append(r.ready, jobs...)
	}
	return nil
}

// readAtOnce is the number of jobs that one round trip asks for.
const readAtOnce = 100

// scan returns some entries of a set. Every entry that is there all the time comes at least once.
func scan(ctx context.Context, c redis.UniversalClient, set deadSet, cursor uint64) ([]redis.Z, uint64, error) {
	var entries []redis.Z
	if set.pattern != "" {
		found, next, err := c.ScanType(ctx, cursor, set.pattern, scanCount, "string").Result()
		for _, key := range found {
			entries = append(entries, redis.Z{Member: key})
		}
		return entries, next, err
	}
	found, next, err := c.ZScan(ctx, set.key, cursor, "", readAtOnce).Result()
	for i := 0; i+1 < len(found); i += 2 {
		score, err := parseScore(found[i+1])
		if err != nil {
			return nil, 0, err
		}
		entries = append(entries, redis.Z{Member: found[i], Score: score})
	}
	return entries, next, err
}

// readError translates an error of a command that reads a key.
func readError(key string, err error) error {
	if isWrongType(err) {
		return nixie.Errorf(nixie.CodeInvalid, "key %q is of another type than this job queue has there: name its database and its prefix",
			clipped(key, nixie.MaxName))
	}
	return nixie.Errorf(nixie.CodeUnavailable, "read %q: %w", clipped(key, nixie.MaxName), err)
}

// Done implements [broker.Reader]: there is nothing to remember.
func (r *Reader) Done(context.Context, ...[]*broker.Record) error { return nil }

// Left implements [broker.Reader].
func (r *Reader) Left() int64 { return r.left }

// Close implements [broker.Reader].
func (r *Reader) Close() { _ = r.client.Close() } // nothing is under way
