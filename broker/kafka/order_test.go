package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
)

// With strict order, later records of a key wait behind the retries of an earlier one, with stages
// too, and other keys pass. Without it, later records pass a retry.
func TestFollowersOfARetry(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		for order, want := range map[broker.ProcessingOrder]string{broker.ProcessStrict: "a0 a0 a0 a1 a2",
			broker.ProcessByKey: "a0 a1 a2 a0 a0"} {
			t.Run(string(order), func(t *testing.T) {
				b := make(t)
				stage := b.addStage(t, 300*time.Millisecond)
				for i := range 3 {
					for _, key := range []string{"a", "b"} {
						b.Produce(t, broker.Publication{Channel: b.source, Key: []byte(key), Value: fmt.Append(nil, key, i)})
					}
				}
				var mu sync.Mutex
				var ran []string
				l := newLedger(b)
				h := b.start(t, func(_ context.Context, d *nixie.Delivery) error {
					mu.Lock()
					ran = append(ran, string(d.Body))
					mu.Unlock()
					if string(d.Body) == "a0" && d.Attempts < 3 {
						return errors.New("not yet")
					}
					l.note(d)
					return nil
				}, func(c *Config, s *broker.Config, p *policy.Config) {
					s.Order = order
					waitsFor(300*time.Millisecond)(c, s, p)
				})
				l.until(t, 6)
				h.leave(t)
				of := func(key string) string {
					return strings.Join(slices.DeleteFunc(slices.Clone(ran), func(s string) bool { return s[:1] != key }), " ")
				}
				if of("a") != want || of("b") != "b0 b1 b2" {
					t.Errorf("%q ran, want of a %q", ran, want)
				}
				if n := len(b.Records(t, stage)); n > 0 && order == broker.ProcessStrict || n != 2 && order == broker.ProcessByKey {
					t.Errorf("%d retries are on the stage", n)
				}
				if last := slices.Index(ran, "b2"); order == broker.ProcessStrict && last > slices.Index(ran, "a1") {
					t.Errorf("%q: the other key waited", ran)
				}
			})
		}
	})
}
