package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Remaining counts all partitions, also those of other members and of none. What this member has
// acknowledged counts as done even before its commit.
func TestRemaining(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.fill(t, 10)
		d, _ := b.open(t, func(c *Config) { c.CommitEvery = time.Minute })
		defer closed(t, d)
		if left := b.left(t, d); left.All != 10 || left.Within < DefaultSession {
			t.Errorf("before anything is received: %+v", left)
		}
		got := take(t, d, 10)
		if left := b.left(t, d); left.All != 10 || left.Ours != 10 {
			t.Errorf("in hand: %+v", left)
		}
		all(t, d.Ack(t.Context(), got[:4]))
		if left := b.left(t, d); left.All != 6 || left.Ours != 6 {
			t.Errorf("some are done: %+v", left)
		}
		b.kick(t, d)
		_, _ = d.Receive(limited(t), broker.Want{Max: 1, Wait: time.Second}) // it may learn that it was thrown out
		if left := b.left(t, d); left.All < 6 {
			t.Errorf("without a member: %+v", left)
		}
	})
}

func (b *fixture) left(t testing.TB, d *Driver) broker.Remaining {
	t.Helper()
	left, err := d.Remaining(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// The control records of transactions have offsets. The driver hands out none of them, and commits
// pass them: otherwise something would always remain.
func TestControlRecordsAreSkipped(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		by, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.TransactionalID(b.source))
		if err != nil {
			t.Fatal(err)
		}
		defer by.Close()
		for range 2 {
			if err := by.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			r := &kgo.Record{Topic: b.source, Key: []byte("one"), Value: []byte("a")}
			if err := by.ProduceSync(limited(t), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := by.EndTransaction(limited(t), kgo.TryCommit); err != nil {
				t.Fatal(err)
			}
		}
		d, _ := b.open(t, nil)
		defer closed(t, d)
		for _, r := range take(t, d, 2) {
			if string(r.Value) != "a" {
				t.Errorf("%q was handed out", r.Value)
			}
			all(t, d.Ack(t.Context(), []*broker.Record{r}))
		}
		ctx := limited(t)
		for left := b.left(t, d); left.All > 0; left = b.left(t, d) {
			if ctx.Err() != nil {
				t.Fatalf("%+v", left)
			}
			if more, err := d.Receive(ctx, broker.Want{Max: 10, Wait: 10 * time.Millisecond}); err != nil || len(more) > 0 {
				t.Fatal(more, err)
			}
		}
	})
}

// The URL sets the session.
func TestSession(t *testing.T) {
	at, err := ParseURL("kafka://h/t?session=30s")
	if err != nil || at.Session != 30*time.Second {
		t.Errorf("%s, %v", at.Session, err)
	}
	for _, bad := range []string{"soon", "10ms", "2h", ""} {
		if _, err := ParseURL("kafka://h/t?session=" + bad); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("session=%s: %v", bad, err)
		}
	}
	if c, err := (Config{Seeds: []string{"h:1"}, Group: "g", Topics: []string{"t"}}).withDefaults(); err != nil ||
		c.Session != DefaultSession || c.heartbeat() > c.Session/3 {
		t.Errorf("%s, heartbeat %s, %v", c.Session, c.heartbeat(), err)
	}
}
