package postgres_test

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/postgres"
)

// forget lets the server forget the claims of a queue, as a crash does that comes before
// they were written, and f make them.
func forget(t *testing.T, schema string, f func()) {
	t.Helper()
	execute(t, "create table "+schema+".was as table "+schema+".cursor")
	f()
	execute(t, "delete from "+schema+".cursor")
	execute(t, "insert into "+schema+".cursor table "+schema+".was")
	execute(t, "drop table "+schema+".was")
	execute(t, "delete from "+schema+".batch")
}

// TestForgottenClaimAndACurrentOne settles and extends, in one call, what a forgotten
// claim got and what the next claim of the same messages got: the batch of the latter is
// locked for that, and its members are not those of the former.
func TestForgottenClaimAndACurrentOne(t *testing.T) {
	list, schema := crowd(t, 2)
	before, after := list[0], list[1]
	_, err := before.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "a"}, nixie.Message{Queue: "q", Key: "b"},
		nixie.Message{Queue: "q", Key: "c"})
	must(t, err)
	want := nixie.Want{Max: 3, Lease: time.Hour}
	var forgotten []*nixie.Delivery
	forget(t, schema, func() {
		forgotten, err = before.Claim(t.Context(), "q", want)
		must(t, err)
	})
	held, err := after.Claim(t.Context(), "q", want)
	must(t, err)
	if len(forgotten) != 3 || len(held) != 3 || forgotten[0].ID != held[0].ID || forgotten[0].Lease.Number != held[0].Lease.Number {
		t.Fatalf("claimed %v, then %v", forgotten, held)
	}
	errs := before.Settle(t.Context(), []nixie.Settlement{
		{Delivery: forgotten[0], Verb: nixie.Retry, Failure: &nixie.Failure{Text: "no", FailedAt: time.Unix(1, 0)}, Delay: time.Hour},
		{Delivery: held[1], Verb: nixie.Release},
	})
	if nixie.CodeOf(errs[0]) != nixie.CodeLeaseLost || errs[1] != nil {
		t.Errorf("settled: %v", errs)
	}
	errs = before.Extend(t.Context(), []*nixie.Delivery{forgotten[0], held[2]}, time.Minute)
	if nixie.CodeOf(errs[0]) != nixie.CodeLeaseLost || errs[1] != nil {
		t.Errorf("extended: %v", errs)
	}
	for _, i := range []int{0, 2} {
		if c := settle(t, after, held[i], nixie.Complete); c != "" {
			t.Errorf("the holder of %s was answered %q", held[i].Key, c)
		}
	}
	sound(t, after)
}

// TestPausedWhileAClaimWaits pauses a queue after a claim has looked whether it is paused
// and before it may hand out: it hands out nothing.
func TestPausedWhileAClaimWaits(t *testing.T) {
	for _, settings := range []nixie.QueueSettings{{}, strict()} {
		t.Run(string(settings.Order), func(t *testing.T) {
			ctx := t.Context()
			s, schema := prepared(t, settings, "a")
			must(t, completed(s, one(t, s))) // the queue has a cursor
			add(t, s, "b")
			holder := begin(t)
			_, err := holder.Exec(ctx, "select from "+schema+".cursor for update")
			must(t, err)
			type answer struct {
				ds  []*nixie.Delivery
				err error
			}
			claimed := make(chan answer, 1)
			go func(s *postgres.Store) {
				ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9})
				claimed <- answer{ds, err}
			}(s)
			until(t, blocked(schema))
			_, err = holder.Exec(ctx, "update "+schema+`.queue set paused = true, settings = settings || '{"paused": true}'`)
			must(t, err)
			must(t, holder.Commit(ctx))
			got := <-claimed
			must(t, got.err)
			if len(got.ds) > 0 {
				t.Errorf("%s was handed out of a paused queue", got.ds[0].Key)
			}
		})
	}
}
