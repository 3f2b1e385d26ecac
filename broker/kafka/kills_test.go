package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/internal/proof"
)

// Consumers are killed at any moment. Each record is handled or becomes a letter, and the group
// commits nothing before that.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "kafka-kills", func(t *testing.T, seed uint64) int { return kills(t, fake(t), seed) })
}

// The same on a real broker.
func TestKilledOnARealBroker(t *testing.T) {
	t.Parallel()
	kills(t, actual(t), 1)
}

func kills(t *testing.T, b *fixture, seed uint64) int {
	const records, most = 3_000, 3
	b.stages = stagesOf()
	b.create(t, 2, nil, b.stages[0].Of(b.source))
	rng := rand.New(rand.NewPCG(seed, 7))
	for i := range records {
		word := fine
		switch {
		case i%20 == 3:
			word = malformed
		case i%10 == 7:
			word = flaky
		}
		b.client.Produce(t.Context(), &kgo.Record{Topic: b.source, Key: fmt.Append(nil, rng.IntN(100)),
			Value: fmt.Append(nil, word, " ", i)}, nil)
	}
	if err := b.client.Flush(limited(t)); err != nil {
		t.Fatal(err)
	}
	l := newLedger(b)
	for n := range most {
		c := b.consume(t, l, time.Second)
		l.until(t, records*(n+1)/(most+2))
		sleep(limited(t), time.Duration(rng.IntN(5_000))*time.Microsecond)
		c.kill()
		if a := l.account(limited(t), t); a.ahead != "" {
			t.Fatalf("%s is committed and was not handled: %s", a.ahead, a)
		}
	}
	c := b.consume(t, l, time.Second)
	ctx := limited(t)
	a := l.account(ctx, t)
	for ; (a.committed < records || a.waiting > 0) && ctx.Err() == nil; a = l.account(ctx, t) {
		sleep(ctx, 20*time.Millisecond)
	}
	c.kill()
	if a = l.account(limited(t), t); a.committed != records || a.missing+a.waiting > 0 || a.letters != records/20 {
		t.Errorf("in the end: %s", a)
	}
	return most
}
