package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// TestDeathsAtTheDoorHaveTheirCause ends messages by a limit before they run: in the group of what
// they failed of before, with the limit as rule and in the text.
func TestDeathsAtTheDoorHaveTheirCause(t *testing.T) {
	cause := errors.New("disk is full")
	for name, c := range map[string]struct {
		err     error         // of each attempt before
		then    policy.Config // of the worker that does not run it
		options nixie.Option
		text    string
	}{
		"max_attempts": {cause, policy.Config{MaxAttempts: 2}, nil, "executed 3 times before, and max_attempts is 2"},
		"max_deliveries": {cause, policy.Config{MaxDeliveries: 3, MaxAttempts: 3}, nil,
			"claimed 3 times without an outcome, and max_deliveries is 3"},
		"max_age": {cause, policy.Config{MaxAge: time.Minute}, nil, "past max_age, which is 1m0s,"},
		"expires_at": {cause, policy.Config{}, func(m *nixie.Message) { m.ExpiresAt = time.Now().Add(10 * time.Minute) },
			"past its expiry"},
	} {
		for _, parked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := memory.New(memory.Options{})
					m := nixie.Message{Queue: "q", Key: "m"}
					if c.options != nil {
						c.options(&m)
					}
					if _, err := st.Enqueue(t.Context(), m); err != nil {
						t.Fatal(err)
					}
					var source nixie.Source = store.NewSource(st, "q")
					if parked {
						source = broker.Parked(source)
					}
					ran := 0
					work := func(config policy.Config, d time.Duration) {
						config.Backoff = policy.Backoff{Base: time.Minute, Factor: 1, Jitter: policy.JitterNone}
						p, err := policy.New(config)
						if err != nil {
							t.Fatal(err)
						}
						fails := handler(func(context.Context, *nixie.Delivery) error {
							ran++
							return c.err
						})
						g := start(t, worker.Config{Source: source, Policy: p, Handler: fails})
						time.Sleep(d)
						g.end()
					}
					work(policy.Config{}, 2*time.Minute+time.Second)
					want, _ := policy.SignatureOf(&message(t, st, "m").History[0], &m)
					time.Sleep(10 * time.Minute)
					work(c.then, time.Second)
					letters, _, err := st.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
					if err != nil || len(letters) != 1 || ran != 3 {
						t.Fatalf("%d letters after %d attempts: %v", len(letters), ran, err)
					}
					l := letters[0]
					newest := l.History[len(l.History)-1].Text
					if l.Signature != want || !strings.Contains(want, "disk is full") || l.Rule != "limit:"+name ||
						!strings.Contains(newest, c.text) {
						t.Errorf("signature %q, want %q; rule %s, text %s", l.Signature, want, l.Rule, newest)
					}
				})
			})
		}
	}
}
