package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// A record whose key the mailbox has had is not added again, until the mailbox forgets the key.
func TestOnce(t *testing.T) {
	t.Parallel()
	f := actual(t)
	f.open(t, Config{})
	seen := keysOf(f.at.Mailbox).remembering(f.at.Mailbox)[6]
	publish := func(values ...string) { // "key value", or " value" without a key
		t.Helper()
		list := make([]broker.Publication, len(values))
		for i, text := range values {
			key, value, _ := strings.Cut(text, " ")
			list[i] = broker.Publication{Channel: f.at.Mailbox, Value: []byte(value), Once: key}
		}
		for _, err := range f.sent.Publish(t.Context(), list)() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	holds := func(want string) {
		t.Helper()
		var got []string
		for _, r := range f.Records(t, f.at.Mailbox) {
			got = append(got, string(r.Value))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("the mailbox has %q, want %q", text, want)
		}
	}
	publish("a 1", " 2", "b 3", "a 4", " 5")
	holds("1 2 3 5")
	publish("b 6", "c 7")
	publish("c 8")
	holds("1 2 3 5 7")
	if left := f.client.PTTL(t.Context(), seen).Val(); left < onceFor-time.Hour || left > onceFor {
		t.Errorf("the keys live for %s", left)
	}
	till := time.UnixMilli(int64(f.client.ZScore(t.Context(), seen, "c").Val()))
	if left := time.Until(till); left < onceFor-time.Hour || left > onceFor {
		t.Errorf("the mailbox forgets a key after %s", left)
	}

	// An old key is forgotten, and so is the oldest of too many; 60,000 are not too many.
	f.client.ZAdd(t.Context(), seen, redis.Z{Score: 1, Member: "a"})
	publish("a 9", "b 10")
	holds("1 2 3 5 7 9")
	many := make([]redis.Z, 1000)
	for n := range 100 {
		if n == 60 {
			publish("b 11")
			publish("b 11")
		}
		for i := range many {
			many[i] = redis.Z{Score: float64(time.Now().Add(48 * time.Hour).UnixMilli()), Member: fmt.Sprint(n, " ", i)}
		}
		if err := f.client.ZAdd(t.Context(), seen, many...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	publish("d 12")
	publish("b 13")
	holds("1 2 3 5 7 9 12 13")
	if n := f.client.ZCard(t.Context(), seen).Val(); n != 100_000 {
		t.Errorf("the mailbox remembers %d keys", n)
	}

	f.client.Del(t.Context(), seen)
	f.client.Set(t.Context(), seen, "another program's", 0)
	err := f.sent.Publish(t.Context(), []broker.Publication{{Channel: f.at.Mailbox, Value: []byte("14"), Once: "e"}})()[0]
	if nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("with a key of another type: %v", err)
	}
	holds("1 2 3 5 7 9 12 13")
}
