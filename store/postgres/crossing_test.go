package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestCallsInEachOthersWay lets processes do everything at once to the same few
// messages: none waits for ever, none fails but with an answer, and the store is
// sound in the end.
func TestCallsInEachOthersWay(t *testing.T) {
	const rounds = 40
	list, _ := crowd(t, 6)
	for _, q := range []string{"a", "b"} {
		must(t, list[0].Configure(t.Context(), q, nixie.QueueSettings{Order: nixie.OrderStrict, DedupeScope: nixie.DedupeUnresolved, LetterRetention: time.Minute}, "ann", ""))
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
		dice := rand.New(rand.NewPCG(uint64(i), 11))
		ctx := t.Context()
		queue := func() string { return []string{"a", "b"}[dice.IntN(2)] }
		for range rounds {
			if err := refused(disturb(ctx, s, dice, queue)...); err != nil {
				return err
			}
		}
		return nil
	}))
	sound(t, list[0])
}

// disturb does one random thing.
func disturb(ctx context.Context, s *postgres.Store, dice *rand.Rand, queue func() string) []error {
	switch dice.IntN(7) {
	case 0, 1:
		var ms []nixie.Message
		for range 1 + dice.IntN(5) {
			ms = append(ms, nixie.Message{Queue: queue(), Stream: fmt.Sprint("s", dice.IntN(3)), DedupeKey: fmt.Sprint("k", dice.IntN(12))})
		}
		_, err := s.Enqueue(ctx, ms...)
		return []error{err}
	case 2, 3:
		ds, err := s.Claim(ctx, queue(), nixie.Want{Max: 5, Lease: time.Second})
		errs := []error{err}
		var settlements []nixie.Settlement
		for _, d := range ds {
			f := &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}
			settlements = append(settlements, [...]nixie.Settlement{
				{Delivery: d, Verb: nixie.Complete}, {Delivery: d, Verb: nixie.Release}, {Delivery: d, Verb: nixie.Retry, Failure: f},
				{Delivery: d, Verb: nixie.Bury, Failure: f, Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Redrivable: true}},
			}[dice.IntN(4)])
		}
		return append(errs, s.Settle(ctx, settlements)...)
	case 4:
		letters, _, err := s.Letters(ctx, nixie.Filter{}, store.Page{Limit: 4})
		var resolutions []store.Resolution
		for _, l := range letters {
			on := []nixie.Event{nixie.OnRedrive, nixie.OnDiscard, nixie.OnHold, nixie.OnRestore, nixie.OnPurge}[dice.IntN(5)]
			resolutions = append(resolutions, store.Resolution{Letter: l.ID, Event: on, Actor: "ann", Reason: "because", Force: true})
		}
		return append(s.Resolve(ctx, resolutions), err)
	case 5:
		records, _, err := s.Messages(ctx, nixie.Filter{States: []nixie.State{nixie.Queued, nixie.Leased}}, store.Page{Limit: 4})
		var ids []nixie.ID
		for _, r := range records {
			ids = append(ids, r.ID)
		}
		verb := []store.ChangeVerb{store.Cancel, store.RetryNow, store.Move, store.MayPass}[dice.IntN(4)]
		return append(s.Amend(ctx, ids, store.Change{Verb: verb, Actor: "ann", Reason: "because", Queue: queue()}), err)
	}
	_, err := s.Prune(ctx, store.Pruning{Resume: true})
	_, other := s.Queues(ctx)
	return []error{err, other}
}
