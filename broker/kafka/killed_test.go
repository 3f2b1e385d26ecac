//go:build unix

package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// A broker that is killed under load and comes back costs repeats and time, and no record.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	own := testservers.OwnKafka(t)
	proof.Run(t, "kafka-broker-kills", func(t *testing.T, _ uint64) int {
		if proof.IsDeep() {
			return brokerKilled(t, own, 2_000, 3)
		}
		return brokerKilled(t, own, 400, 1)
	})
}

func brokerKilled(t *testing.T, own *testservers.Kafka, records, kills int) int {
	b := newFixture(t, []string{own.Seed})
	var list []broker.Publication
	for i := range records {
		list = append(list, broker.Publication{Channel: b.source, Key: fmt.Append(nil, i%40), Value: fmt.Append(nil, i)})
	}
	b.Produce(t, list...)
	l := newLedger(b)
	h := b.start(t, func(ctx context.Context, d *nixie.Delivery) error {
		sleep(ctx, time.Millisecond)
		l.note(d)
		if d.Origin.Offset%50 == 0 {
			return errBad
		}
		return nil
	}, nil)
	for n := range kills {
		l.until(t, records*(n+1)/(kills+2))
		if err := own.Kill(limited(t)); err != nil {
			t.Fatal(err)
		}
	}
	l.until(t, records)
	at, ctx := l.check(t), limited(t)
	for ; at < int64(records) && ctx.Err() == nil; at = l.check(t) {
		sleep(ctx, 20*time.Millisecond)
	}
	if at != int64(records) {
		t.Errorf("%d of %d are committed", at, records)
	}
	dead := map[string]bool{}
	for _, r := range b.Records(t, b.letters) {
		dead[header(&r, broker.HeaderPartition)+"/"+header(&r, broker.HeaderOffset)] = true
	}
	want := 0
	for _, offsets := range l.done {
		want += (len(offsets) + 49) / 50
	}
	if len(dead) != want {
		t.Errorf("%d records have letters, want %d", len(dead), want)
	}
	h.leave(t)
	return kills
}
