package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestCallsInEachOthersWay lets processes do everything at once to the same few
// messages: none waits for ever, none fails but with an answer, and the store is
// sound in the end. As locks are taken in one order, PostgreSQL has no deadlock to
// end.
func TestCallsInEachOthersWay(t *testing.T) {
	const rounds = 60
	before := deadlocks(t)
	began := time.Now()
	list, _ := crowdAt(t, 8, func() time.Time { return began.Add(time.Since(began) * 1000) }) // so that retentions end
	for _, q := range []string{"a", "b"} {
		must(t, store.Configure(t.Context(), list[0], q, nixie.QueueSettings{Order: nixie.OrderStrict, DedupeScope: nixie.DedupeUnresolved,
			LetterRetention: time.Minute}, "ann", ""))
	}
	refused := func(errs ...error) error {
		for _, err := range errs {
			switch nixie.CodeOf(err) {
			case "", nixie.CodeConflict, nixie.CodeNotFound, nixie.CodeLeaseLost:
			default:
				return err
			}
		}
		return nil
	}
	must(t, each(list, func(i int, s *postgres.Store) error {
		rng := rand.New(rand.NewPCG(uint64(i), 11))
		ctx := t.Context()
		queue := func() string { return []string{"a", "b", "loose"}[rng.IntN(3)] }
		for range rounds {
			if err := refused(disturb(ctx, s, rng, queue)...); err != nil {
				return err
			}
		}
		return nil
	}))
	sound(t, list[0])
	for _, s := range list {
		must(t, s.Close()) // connections say what they counted when they end
	}
	if n := deadlocks(t) - before; n > 0 {
		t.Errorf("PostgreSQL had to end %d deadlocks", n)
	}
}

// deadlocks counts deadlocks, once no other client is connected.
func deadlocks(t *testing.T) (n int) {
	t.Helper()
	server.Need(t)
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	for others := 1; others > 0; {
		must(t, conn.QueryRow(t.Context(),
			`select (select count(*) from pg_stat_activity where application_name = 'nixie'), 
				(select deadlocks from pg_stat_database where datname = current_database())`).Scan(&others, &n))
	}
	return n
}

// disturb does one random thing.
func disturb(ctx context.Context, s *postgres.Store, rng *rand.Rand, queue func() string) []error {
	switch rng.IntN(10) {
	case 0, 1:
		var ms []nixie.Message
		conflict := []nixie.Conflict{nixie.ReturnExisting, nixie.ReplaceExisting}[rng.IntN(2)]
		for range 1 + rng.IntN(5) {
			ms = append(ms, nixie.Message{Queue: queue(), Stream: fmt.Sprint("s", rng.IntN(3)),
				DedupeKey: []string{"", fmt.Sprint("k", rng.IntN(12))}[rng.IntN(2)], OnConflict: conflict})
		}
		_, err := s.Enqueue(ctx, ms...)
		return []error{err}
	case 2, 3:
		ds, err := s.Claim(ctx, queue(), nixie.Want{Max: 5, Lease: nixie.MaxLease})
		errs := []error{err}
		return append(errs, s.Settle(ctx, outcomes(ds, rng, 5))...)
	case 8:
		ds, err := s.Claim(ctx, queue(), nixie.Want{Max: 5, Lease: nixie.MaxLease})
		errs := []error{err}
		for range 4 {
			var some []error
			some, ds, err = s.Features().Exchange(ctx, outcomes(ds, rng, []int{1, 5}[rng.IntN(2)]), queue(),
				nixie.Want{Max: 5, Lease: nixie.MaxLease})
			errs = append(append(errs, some...), err)
		}
		return append(errs, s.Settle(ctx, outcomes(ds, rng, 1))...)
	case 4:
		letters, _, err := s.Letters(ctx, nixie.Filter{}, store.Page{Limit: 4})
		var resolutions []store.Resolution
		for _, l := range letters {
			on := []store.Event{store.OnRedrive, store.OnDiscard, store.OnHold, store.OnRestore, store.OnPurge}[rng.IntN(5)]
			resolutions = append(resolutions, store.Resolution{Letter: l.ID, Event: on, Actor: "ann", Reason: "because", Force: true})
		}
		return append(s.Resolve(ctx, resolutions), err)
	case 5:
		records, _, err := s.Messages(ctx, nixie.Filter{States: []nixie.State{nixie.Queued, nixie.Leased}}, store.Page{Limit: 4})
		var ids []nixie.ID
		for _, r := range records {
			ids = append(ids, r.ID)
		}
		verb := []store.ChangeVerb{store.Cancel, store.RetryNow, store.Move, store.MayPass}[rng.IntN(4)]
		return append(s.Amend(ctx, ids, store.Change{Verb: verb, Actor: "ann", Reason: "because", Queue: queue()}), err)
	case 6:
		_, err := s.Adjust(ctx, queue(), "ann", "because", func(set *nixie.QueueSettings) error {
			set.Paused, set.AuditRetention = false, nixie.MinRetention
			if set.Ordered() {
				set.DeadHead = []nixie.DeadHead{nixie.DeadBlocks, nixie.DeadFrees}[rng.IntN(2)]
			}
			return nil
		})
		return []error{err}
	case 7:
		_, err := s.Unblock(ctx, store.Unblocking{Queue: queue(), Stream: fmt.Sprint("s", rng.IntN(3)), Actor: "ann", Reason: "because",
			Mark: rng.IntN(2) == 0})
		return []error{err}
	}
	_, err := s.Prune(ctx, store.Pruning{Resume: rng.IntN(2) == 0})
	_, other := s.Queues(ctx, store.QueueQuery{})
	return []error{err, other}
}

// outcomes settles deliveries in some of the ways.
func outcomes(ds []*nixie.Delivery, rng *rand.Rand, ways int) (settlements []nixie.Settlement) {
	for _, d := range ds {
		f := &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}
		burial := &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Redrivable: true}
		settlements = append(settlements, [...]nixie.Settlement{
			{Delivery: d, Verb: nixie.Complete}, {Delivery: d, Verb: nixie.Release}, {Delivery: d, Verb: nixie.Retry, Failure: f},
			{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: burial}, {Delivery: d, Verb: nixie.Halt, Failure: f, Burial: burial},
		}[rng.IntN(ways)])
	}
	return settlements
}

// TestFollowersTakeEachOthersKeys lets two processes settle messages whose followers take each
// other's keys. Neither waits for the other in a circle.
func TestFollowersTakeEachOthersKeys(t *testing.T) {
	before := deadlocks(t)
	list, _ := crowdAt(t, 2, time.Now)
	keys := [...]string{"a", "b"}
	must(t, each(list, func(i int, s *postgres.Store) error {
		ctx, other := t.Context(), keys[1-i]
		for range 30 {
			if _, err := s.Enqueue(ctx, nixie.Message{Queue: keys[i], DedupeKey: "k"}); err != nil {
				return err
			}
			ds, err := s.Claim(ctx, keys[i], nixie.Want{Max: 9, Lease: nixie.MaxLease})
			if err != nil {
				return err
			}
			for _, d := range ds {
				st := nixie.Settlement{Delivery: d, Verb: nixie.Complete, Then: []nixie.Message{{Queue: other, DedupeKey: "k"}}}
				if err := s.Settle(ctx, []nixie.Settlement{st})[0]; err != nil {
					return err
				}
			}
		}
		return nil
	}))
	sound(t, list[0])
	for _, s := range list {
		must(t, s.Close())
	}
	if n := deadlocks(t) - before; n > 0 {
		t.Errorf("PostgreSQL had to end %d deadlocks", n)
	}
}
