package kafka

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/nixie-go/nixie/broker"
)

// account counts what became of the records of a source: each is handled, has its letter, or waits
// on a stage. A record that was handled twice counts once.
type account struct {
	records, handled, repeated, letters, waiting, missing int

	committed int64
	ahead     string // a committed record with none of these outcomes; empty: there is none
}

func (a account) String() string {
	return fmt.Sprintf(
		"%d records: %d handled (%d of them more than once), %d letters, %d on a retry topic, %d with no outcome yet; %d committed",
		a.records, a.handled, a.repeated, a.letters, a.waiting, a.missing, a.committed)
}

// offsets returns the committed offset of each partition of the source.
func (b *fixture) offsets(ctx context.Context, t testing.TB) kadm.OffsetResponses {
	t.Helper()
	all, err := kadm.NewClient(b.client).FetchOffsets(ctx, b.source)
	for err != nil && ctx.Err() == nil { // the broker behind the connection was killed
		all, err = kadm.NewClient(b.client).FetchOffsets(ctx, b.source)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// account counts all records. It asks for the committed offsets first: consumers that run meanwhile
// can only be ahead of those.
func (l *ledger) account(ctx context.Context, t testing.TB) (a account) {
	t.Helper()
	b := l.fixture
	group := b.offsets(ctx, t)
	letters, waiting := map[string]bool{}, map[string]bool{}
	for _, r := range b.Records(t, b.letters) {
		letters[header(&r, broker.HeaderPartition)+"/"+header(&r, broker.HeaderOffset)] = true
	}
	for _, s := range b.stages {
		for _, r := range b.Records(t, s.Of(b.source)) {
			if done, _ := group.Lookup(r.Channel, r.Partition); r.Offset >= done.At {
				waiting[header(&r, broker.HeaderPartition)+"/"+header(&r, broker.HeaderOffset)] = true
			}
		}
	}
	ends, err := kadm.NewClient(b.client).ListEndOffsets(ctx, b.source)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ends.Each(func(end kadm.ListedOffset) {
		done, _ := group.Lookup(end.Topic, end.Partition)
		a.records += int(end.Offset)
		a.committed += max(done.At, 0)
		for offset := range end.Offset {
			at := fmt.Sprint(end.Partition, "/", offset)
			switch times := l.done[topicPartition{b.source, end.Partition}][offset]; {
			case times > 1:
				a.repeated++
				fallthrough
			case times > 0:
				a.handled++
			case letters[at]:
				a.letters++
			case waiting[at]:
				a.waiting++
			default:
				if a.missing++; offset < done.At {
					a.ahead = at
				}
			}
		}
	})
	return a
}
