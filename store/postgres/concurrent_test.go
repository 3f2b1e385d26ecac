package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// impatient opens a schema once more by a store that waits for locks for a moment only: what
// it does in a test waits for no other transaction.
func impatient(t *testing.T, schema string) *postgres.Store {
	t.Helper()
	return open(t, server.URL, postgres.Options{Schema: schema, LockWait: 100 * time.Millisecond})
}

// prepared is a store with a queue q, of whose stream s there are messages with these keys.
func prepared(t *testing.T, settings nixie.QueueSettings, keys ...string) (s *postgres.Store, schema string) {
	t.Helper()
	list, schema := crowd(t, 1)
	must(t, store.Configure(t.Context(), list[0], "q", settings, "ann", ""))
	for _, key := range keys {
		add(t, list[0], key)
	}
	return list[0], schema
}

// add adds messages with these keys to stream s of queue q, in one call.
func add(t *testing.T, to nixie.Enqueuer, keys ...string) {
	t.Helper()
	var ms []nixie.Message
	for _, key := range keys {
		ms = append(ms, nixie.Message{Queue: "q", Stream: "s", Key: key})
	}
	_, err := to.Enqueue(t.Context(), ms...)
	must(t, err)
}

// begin begins a transaction of a caller.
func begin(t *testing.T) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close(context.Background())) })
	tx, err := conn.Begin(t.Context())
	must(t, err)
	return tx
}

// TestAddingMakesNoCallWait lets a transaction of a caller that has added to a strict
// stream stay open: who is at work on that stream does all that may become of its
// messages meanwhile, together with others, and what was added is next when it commits.
func TestAddingMakesNoCallWait(t *testing.T) {
	for name, more := range map[string]struct {
		before []string // messages of the stream
		then   func(*postgres.Store, *nixie.Delivery) error
		next   []string // what is handed out before the commit
		commit bool
		out    bool // the first is still out then
	}{
		"the only one succeeds":    {before: []string{"1"}, commit: true, then: completed},
		"the first of two":         {before: []string{"1", "2"}, commit: true, then: completed, next: []string{"2"}},
		"it is rolled back":        {before: []string{"1"}, then: completed},
		"it is extended":           {before: []string{"1"}, commit: true, then: extended, out: true},
		"it is given back":         {before: []string{"1"}, commit: true, then: released, next: []string{"1"}},
		"it is given back, of two": {before: []string{"1", "2"}, commit: true, then: released, next: []string{"1", "2"}},
		"nothing was there":        {commit: true},
	} {
		t.Run(name, func(t *testing.T) {
			long, schema := prepared(t, strict(), more.before...)
			s := impatient(t, schema)
			_, err := long.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "other", Key: "other"},
				nixie.Message{Queue: "q", Stream: "s2", Key: "other"})
			must(t, err)
			ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 9})
			must(t, err)

			tx := begin(t)
			_, err = long.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s", Key: "added"},
				nixie.Message{Queue: "q", Stream: "s3", Key: "other"})
			must(t, err)
			var all []nixie.Settlement
			for _, d := range ds {
				if d.Stream != "s" {
					all = append(all, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
				} else if more.then != nil {
					must(t, more.then(s, d))
				}
			}
			for _, err := range s.Settle(t.Context(), all) {
				must(t, err)
			}
			sound(t, s)
			if got := drain(t, s); !slices.Equal(got, more.next) {
				t.Errorf("before the commit came %v, want %v", got, more.next)
			}
			sound(t, s)

			end, want := tx.Rollback, []string{"later"}
			if more.commit {
				end, want = tx.Commit, []string{"added", "later", "other"}
			}
			must(t, end(t.Context()))
			add(t, s, "later")
			if more.out {
				want = []string{"other"}
			}
			sound(t, s)
			if got := drain(t, s); !slices.Equal(got, want) {
				t.Errorf("then came %v, want %v", got, want)
			}
			sound(t, s)
		})
	}
}

func completed(s *postgres.Store, d *nixie.Delivery) error {
	return s.Settle(context.Background(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0]
}

func released(s *postgres.Store, d *nixie.Delivery) error {
	return s.Settle(context.Background(), []nixie.Settlement{{Delivery: d, Verb: nixie.Release}})[0]
}

func buried(s *postgres.Store, d *nixie.Delivery) error {
	burial := &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Redrivable: true}
	return s.Settle(context.Background(), []nixie.Settlement{{Delivery: d, Verb: nixie.Bury,
		Failure: &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}, Burial: burial}})[0]
}

func extended(s *postgres.Store, d *nixie.Delivery) error {
	d.Steps = []string{"half"} // so that it gets a row
	return s.Extend(context.Background(), []*nixie.Delivery{d}, time.Hour)[0]
}

// drain completes what comes, and returns the keys, sorted; those of one stream come in order.
func drain(t *testing.T, s *postgres.Store) (keys []string) {
	t.Helper()
	for none := 0; none < 2; none++ {
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 100})
		must(t, err)
		for _, d := range ds {
			keys, none = append(keys, d.Key), 0
			must(t, completed(s, d))
		}
	}
	slices.Sort(keys)
	return keys
}

// TestWhatEndsWhileItIsAddedTo lets the only message of a stream end, and another be added, by
// two who do not see each other, and a claim see the second of these first: what was added
// comes all the same, once.
func TestWhatEndsWhileItIsAddedTo(t *testing.T) {
	ctx := t.Context()
	for name, begins := range map[string]func(t *testing.T, s *postgres.Store, schema string, d *nixie.Delivery) (end func()){
		"by a settlement": func(t *testing.T, s *postgres.Store, schema string, d *nixie.Delivery) func() {
			block := begin(t) // keeps it from its end, once it has seen all that it will see
			_, err := block.Exec(ctx, "insert into "+schema+".log (pos, queue, state, ended, received) values ($1, 0, 2, 0, 0)",
				d.Lease.Handle.Pos)
			must(t, err)
			settled := make(chan error, 1)
			go func() { settled <- completed(s, d) }()
			until(t, blocked(schema))
			return func() {
				must(t, block.Rollback(ctx))
				must(t, <-settled)
			}
		},
		"by hand": func(t *testing.T, s *postgres.Store, schema string, d *nixie.Delivery) func() {
			block := begin(t) // keeps it from its commit
			_, err := block.Exec(ctx, "select from "+schema+".chain for update")
			must(t, err)
			canceled := make(chan error, 1)
			go func() {
				canceled <- s.Amend(ctx, []nixie.ID{d.ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0]
			}()
			until(t, blocked(schema))
			return func() {
				must(t, block.Rollback(ctx))
				must(t, <-canceled)
			}
		},
		"in a transaction": func(t *testing.T, s *postgres.Store, _ string, d *nixie.Delivery) func() {
			tx := begin(t)
			must(t, s.Tx(tx).Complete(ctx, d))
			return func() { must(t, tx.Commit(ctx)) }
		},
		"in a transaction, after a retry": func(t *testing.T, s *postgres.Store, _ string, d *nixie.Delivery) func() {
			must(t, released(s, d))
			ds, err := s.Claim(ctx, "q", nixie.Want{Max: 1})
			must(t, err)
			tx := begin(t)
			must(t, s.Tx(tx).Complete(ctx, ds[0]))
			return func() { must(t, tx.Commit(ctx)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, schema := prepared(t, strict(), "1")
			end := begins(t, s, schema, one(t, s))
			tx := begin(t)
			add(t, s.Tx(tx), "2")
			must(t, tx.Commit(ctx))
			for range 2 {
				ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9})
				must(t, err)
				if len(ds) > 0 {
					t.Errorf("message %s came before the first had ended", ds[0].Key)
				}
			}
			end()
			sound(t, s)
			if got := drain(t, s); !slices.Equal(got, []string{"2"}) {
				t.Errorf("then came %v", got)
			}
			sound(t, s)
		})
	}
}

// blocked asks whether a session waits for another transaction in a schema.
func blocked(schema string) string {
	return "select exists (select from pg_stat_activity where wait_event = 'transactionid' and query like '%" + schema + ".%')"
}

// TestAddedToAStreamWithALetter adds to a stream with a letter in a transaction while another
// one holds the stream: what was added comes once that is over.
func TestAddedToAStreamWithALetter(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, nixie.QueueSettings{Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees}, "dead")
	must(t, buried(s, one(t, s)))
	tx, holder := begin(t), begin(t)
	add(t, s.Tx(tx), "1", "2")
	_, err := holder.Exec(ctx, "select from "+schema+".stream for no key update")
	must(t, err)
	must(t, tx.Commit(ctx))
	for range 3 {
		ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9})
		must(t, err)
		if len(ds) > 0 {
			t.Errorf("message %s came from a stream that is held", ds[0].Key)
		}
		sound(t, s)
	}
	must(t, holder.Rollback(ctx))
	if got := drain(t, s); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("then came %v", got)
	}
	sound(t, s)
}

// TestCallIsWholeOrNothing: what the server refuses at the end of a call is undone with all of
// it, and the transaction goes on.
func TestCallIsWholeOrNothing(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, strict())
	tx := begin(t)
	_, err := tx.Exec(ctx, "alter table "+schema+".message add check (key is distinct from 'bad')")
	must(t, err)
	for _, m := range []nixie.Message{{Queue: "q", Stream: "s", Key: "bad"}, {Queue: "q", Key: "bad", DedupeKey: "d"}} {
		if _, err := s.Tx(tx).Enqueue(ctx, m); nixie.CodeOf(err) != nixie.CodeInternal {
			t.Errorf("%+v: %v", m, err)
		}
	}
	_, err = s.Tx(tx).Enqueue(ctx, nixie.Message{Queue: "q", Key: "good", DedupeKey: "d"})
	must(t, err)
	must(t, tx.Commit(ctx))
	if got := drain(t, s); !slices.Equal(got, []string{"good"}) {
		t.Errorf("messages %v came", got)
	}
	sound(t, s)
}

// TestTransactionsAddOneAfterTheOther lets two transactions of callers add to one stream: the
// second waits for the first, so that what it adds comes later.
func TestTransactionsAddOneAfterTheOther(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, strict(), "done")
	must(t, completed(s, one(t, s)))
	first, second := begin(t), begin(t)
	added := make(chan error, 1)
	for i, tx := range []pgx.Tx{first, second} {
		add := func() error {
			_, err := s.Tx(tx).Enqueue(ctx, nixie.Message{Queue: "q", Stream: "s", Key: fmt.Sprint(i)})
			return err
		}
		if i == 0 {
			must(t, add())
		} else {
			go func() { added <- add() }()
		}
	}
	until(t, blocked(schema))
	must(t, first.Commit(ctx))
	must(t, <-added)
	must(t, second.Commit(ctx))
	for i := range 2 {
		if d := one(t, s); d.Key != fmt.Sprint(i) {
			t.Errorf("message %s came", d.Key)
		} else {
			must(t, completed(s, d))
		}
	}
}

// TestBatchesAreLockedInOrder settles members of batches by range and by the ordered path in one
// call: it locks all batches in one order, so a call that waits for the first holds none of the
// others.
func TestBatchesAreLockedInOrder(t *testing.T) {
	ctx := t.Context()
	s, schema := prepared(t, strict(), "1")
	_, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Stream: "s2"}, nixie.Message{Queue: "plain"}, nixie.Message{Queue: "plain"})
	must(t, err)
	var sts []nixie.Settlement
	for _, queue := range []string{"q", "plain"} {
		ds, err := s.Claim(ctx, queue, nixie.Want{Max: 2})
		must(t, err)
		sts = append(sts, nixie.Settlement{Delivery: ds[0], Verb: nixie.Release})
	}
	first, last := sts[0].Delivery.Lease.Handle.Batch, sts[1].Delivery.Lease.Handle.Batch
	if first >= last {
		t.Fatalf("batches are %d and %d", first, last)
	}
	holder := begin(t)
	_, err = holder.Exec(ctx, "select from "+schema+".batch where n = $1 for update", first)
	must(t, err)
	settled := make(chan []error, 1)
	go func() { settled <- s.Settle(ctx, sts) }()
	until(t, blocked(schema))
	if _, err := holder.Exec(ctx, "select from "+schema+".batch where n = $1 for update nowait", last); err != nil {
		t.Error(err)
	}
	must(t, holder.Rollback(ctx))
	for _, err := range <-settled {
		must(t, err)
	}
	sound(t, s)
}

// until waits for what a query says.
func until(t *testing.T, query string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	for is := false; !is; {
		must(t, conn.QueryRow(t.Context(), query).Scan(&is))
	}
}
