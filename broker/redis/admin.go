package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Create makes a mailbox. One that is there keeps its records, and gets the retention; nil changes
// nothing.
func (p *Publisher) Create(ctx context.Context, name string, keep *Retention) error {
	m, err := newMailbox(p.client, name)
	if err != nil {
		return err
	}
	return m.create(ctx, keep)
}

// List returns the names of all mailboxes of the server or the cluster, sorted. It looks through
// all keys in steps, so a mailbox that is made or deleted meanwhile may be missing or listed.
func (p *Publisher) List(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var names []string
	list := func(ctx context.Context, c *redis.Client) error {
		some, err := listOn(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		names = append(names, some...)
		return err
	}
	var err error
	switch c := p.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, list)
	case *redis.Client:
		err = list(ctx, c)
	}
	slices.Sort(names)
	return slices.Compact(names), explain("list mailboxes", err)
}

// listOn lists the mailboxes of one server.
func listOn(ctx context.Context, c *redis.Client) (names []string, err error) {
	const step = 1000
	for cursor := uint64(0); ; {
		var found []string
		found, cursor, err = c.Scan(ctx, cursor, "nixie:{*}:counts", step).Result()
		for _, key := range found {
			name := strings.TrimSuffix(strings.TrimPrefix(key, "nixie:{"), "}:counts")
			if CheckName(name) == nil {
				names = append(names, name)
			}
		}
		if err != nil || cursor == 0 {
			return names, err
		}
	}
}

// Look counts what is in a mailbox. [nixie.CodeNotFound] means that it is not there.
func (p *Publisher) Look(ctx context.Context, name string) (Stats, error) {
	m, err := newMailbox(p.client, name)
	if err != nil {
		return Stats{}, err
	}
	return m.stats(ctx)
}

// Purge removes up to most records that no receiver has, the visible ones first. After each
// step it tells told the number so far; nil hears nothing. With an error it still returns how many
// it is sure to have removed.
func (p *Publisher) Purge(ctx context.Context, name string, most int64, told func(int64)) (purged int64, err error) {
	m, err := newMailbox(p.client, name)
	if err != nil {
		return 0, err
	}
	for purged < most {
		text, err := m.keys.text(ctx, p.client, "purge", min(most-purged, mostRecords))
		if err != nil {
			return purged, explain(m.act("purge"), err)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return purged, strangeAnswer(m.act("purge"))
		}
		if n == 0 {
			break
		}
		if purged += n; told != nil {
			told(purged)
		}
	}
	return purged, nil
}

// Browse looks at up to most visible records after the first from, and leases none. Most is at most
// 1000. A record that is received meanwhile may hide another one from the next call.
func (p *Publisher) Browse(ctx context.Context, name string, from, most int) ([]broker.Record, error) {
	if from < 0 || most < 1 || most > mostRecords {
		return nil, nixie.Errorf(nixie.CodeInvalid, "browse is for %d records after the first %d: look at 1 to %d, after 0 or more",
			most, from, mostRecords)
	}
	m, err := newMailbox(p.client, name)
	if err != nil {
		return nil, err
	}
	if _, err := m.stats(ctx); err != nil { // positions depend on when the mailbox was made
		return nil, err
	}
	out, err := m.keys.list(ctx, p.client, "browse", from, most)
	switch {
	case err != nil:
		return nil, explain(m.act("look at"), err)
	case len(out)%3 != 0:
		return nil, strangeAnswer(m.act("look at"))
	}
	records := make([]broker.Record, len(out)/3)
	for n := range records {
		m.record(out[3*n], out[3*n+1], out[3*n+2], &records[n])
	}
	return records, nil
}
