package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestTimeOfWaiting lets calls wait for locks while time goes on: what they do begins
// when they got them.
func TestTimeOfWaiting(t *testing.T) {
	const lease = 10 * time.Second
	claim := func(t *testing.T, s *postgres.Store, _ *nixie.Delivery) time.Time {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: lease})
		must(t, err)
		if len(ds) != 1 {
			t.Fatalf("%d messages came, want 1", len(ds))
		}
		return ds[0].Lease.ExpiresAt.Add(-lease)
	}
	extend := func(t *testing.T, s *postgres.Store, d *nixie.Delivery) time.Time {
		must(t, s.Extend(t.Context(), []*nixie.Delivery{d}, lease)[0])
		return look(t, s).LeaseExpiresAt.Add(-lease)
	}
	retry := func(t *testing.T, s *postgres.Store, d *nixie.Delivery) time.Time {
		must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Retry, Delay: lease}})[0])
		return look(t, s).NotBefore.Add(-lease)
	}
	for name, c := range map[string]struct {
		settings nixie.QueueSettings
		delay    time.Duration
		lock     string // what the call waits for
		call     func(*testing.T, *postgres.Store, *nixie.Delivery) time.Time
		claimed  bool // before
	}{
		"a claim":                    {lock: "cursor", call: claim},
		"a claim of an ordered path": {settings: strict(), lock: "cursor", call: claim},
		"a claim of a row, strict":   {settings: strict(), delay: time.Nanosecond, lock: "cursor", call: claim},
		"an extension":               {lock: "batch", call: extend, claimed: true},
		"an extension, strict":       {settings: strict(), lock: "batch", call: extend, claimed: true},
		"a retry":                    {lock: "batch", call: retry, claimed: true},
		"a retry, strict":            {settings: strict(), lock: "batch", call: retry, claimed: true},
		"a retry of a row":           {delay: time.Nanosecond, lock: "pending", call: retry, claimed: true},
		"a retry of a row, strict":   {settings: strict(), delay: time.Nanosecond, lock: "pending", call: retry, claimed: true},
	} {
		for whose, clock := range map[string]*storetest.Clock{"the database's clock": nil, "a clock that was set": storetest.NewClock()} {
			t.Run(name+" by "+whose, func(t *testing.T) {
				var opts func() time.Time
				if clock != nil {
					opts = clock.Now
				}
				list, schema := crowdAt(t, 1, opts)
				s := list[0]
				must(t, store.Configure(t.Context(), s, "q", c.settings, "ann", ""))
				_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s", Delay: c.delay})
				must(t, err)
				if clock != nil {
					clock.Advance(time.Second)
				}
				var d *nixie.Delivery
				if c.claimed {
					d = one(t, s)
				}
				holder := begin(t)
				_, err = holder.Exec(t.Context(), "select from "+schema+"."+c.lock+" for update")
				must(t, err)
				at := make(chan time.Time, 1)
				go func() {
					defer close(at)
					at <- c.call(t, s, d)
				}()
				until(t, blocked(schema))
				now := later(t, holder, clock)
				must(t, holder.Commit(t.Context()))
				if got := <-at; got.Before(now) {
					t.Errorf("it began %s before it had its lock", now.Sub(got))
				}
			})
		}
	}
}

// later lets time go on, and says it.
func later(t *testing.T, tx pgx.Tx, clock *storetest.Clock) (now time.Time) {
	t.Helper()
	if clock == nil {
		must(t, tx.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now))
		return now
	}
	clock.Advance(3 * time.Second)
	return clock.Now()
}

// look reads the only message.
func look(t *testing.T, s *postgres.Store) nixie.Message {
	t.Helper()
	all, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{Limit: 1})
	must(t, err)
	return all[0].Message
}
