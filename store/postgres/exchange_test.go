package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// exchangeOne settles one message, and claims the next.
func exchangeOne(t *testing.T, s *postgres.Store, st nixie.Settlement) (*nixie.Delivery, error, error) {
	t.Helper()
	errs, ds, err := s.Features().Exchange(t.Context(), []nixie.Settlement{st}, "q", nixie.Want{Max: 1, Lease: time.Minute})
	if len(ds) == 0 {
		return nil, errs[0], err
	}
	return ds[0], errs[0], err
}

// ways has a settlement that is a statement of its own, and one that the engine makes.
func ways() map[string]func(*nixie.Delivery) nixie.Settlement {
	return map[string]func(*nixie.Delivery) nixie.Settlement{
		"success": func(d *nixie.Delivery) nixie.Settlement { return nixie.Settlement{Delivery: d, Verb: nixie.Complete} },
		"discard": func(d *nixie.Delivery) nixie.Settlement { return nixie.Settlement{Delivery: d, Verb: nixie.Discard} },
	}
}

// TestExchangeIsOneTransaction looks at the transactions that wrote what ended and what was
// claimed.
func TestExchangeIsOneTransaction(t *testing.T) {
	for name, settlement := range ways() {
		for order, settings := range map[string]nixie.QueueSettings{"none": {}, "strict": strict()} {
			t.Run(name+" of a queue with order "+order, func(t *testing.T) {
				list, schema := crowd(t, 1)
				s := list[0]
				must(t, store.Configure(t.Context(), s, "q", settings, "ann", ""))
				_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "1", Stream: "a"},
					nixie.Message{Queue: "q", Key: "2", Stream: "b"})
				must(t, err)
				next, settled, err := exchangeOne(t, s, settlement(one(t, s)))
				must(t, err)
				must(t, settled)
				if next == nil || next.Key != "2" {
					t.Fatalf("claimed %v", next)
				}
				conn, err := pgx.Connect(t.Context(), server.URL)
				must(t, err)
				defer func() { must(t, conn.Close(t.Context())) }()
				var rows, transactions int
				must(t, conn.QueryRow(t.Context(), `select count(*), count(distinct x::text) from (select xmin as x from `+schema+
					`.batch union all select xmin from `+schema+`.log union all select xmin from `+schema+`.success_range) y`).
					Scan(&rows, &transactions))
				if rows < 2 || transactions != 1 {
					t.Errorf("%d transactions wrote %d rows", transactions, rows)
				}
				sound(t, s)
			})
		}
	}
}

// TestExchangeWaitsForTheDisk kills the server after exchanges. Claims alone wait for no disk; what
// an exchange says is settled stays so.
func TestExchangeWaitsForTheDisk(t *testing.T) {
	const many = 30
	own := testservers.OwnPostgres(t)
	s, err := postgres.Open(t.Context(), own.URL, postgres.Options{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for range many + 1 { // plain ones
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
		must(t, err)
	}
	var done []nixie.ID
	d := one(t, s)
	for range many {
		next, settled, err := exchangeOne(t, s, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
		must(t, err)
		must(t, settled)
		done, d = append(done, d.ID), next
	}
	must(t, own.Kill())
	var found []store.Record
	err = nixie.Errorf(nixie.CodeUnavailable, "not asked yet")
	for err != nil && t.Context().Err() == nil { // the server comes back
		found, _, err = s.Messages(t.Context(), nixie.Filter{IDs: done, States: []nixie.State{nixie.Succeeded}}, store.Page{Limit: many})
	}
	if len(found) != many {
		t.Errorf("of %d that were completed the server knows %d", many, len(found))
	}
	sound(t, s)
}

// TestExchangeWhoseClaimFails lets the server refuse claims: the settlements are made without.
func TestExchangeWhoseClaimFails(t *testing.T) {
	for name, settlement := range ways() {
		t.Run(name, func(t *testing.T) {
			list, schema := crowd(t, 1)
			s := list[0]
			for range 2 { // plain ones
				_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
				must(t, err)
			}
			d := one(t, s)
			execute(t, "alter table "+schema+".batch add constraint none check (remains < members) not valid")
			next, settled, err := exchangeOne(t, s, settlement(d))
			execute(t, "alter table "+schema+".batch drop constraint none")
			if next != nil || err == nil {
				t.Errorf("claimed %v, %v", next, err)
			}
			must(t, settled)
			if code := nixie.CodeOf(s.Settle(t.Context(), []nixie.Settlement{settlement(d)})[0]); code != nixie.CodeLeaseLost {
				t.Errorf("it can be settled again: %q", code)
			}
			one(t, s)
			sound(t, s)
		})
	}
}
