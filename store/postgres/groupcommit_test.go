package postgres_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// barrier keeps all calls from adding messages until its transaction ends.
func barrier(t *testing.T, schema string) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close(context.Background())) })
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "lock table "+schema+".message in share mode")
	must(t, err)
	return tx
}

// stopped waits until n transactions wait for a barrier.
func stopped(t *testing.T, look pgx.Tx, schema string, n int) {
	t.Helper()
	for have := 0; have != n; {
		must(t, look.QueryRow(t.Context(), "select count(*) from pg_locks where relation = $1::regclass and not granted",
			schema+".message").Scan(&have))
	}
}

// waiting waits until n calls wait for the one before them.
func waiting(s *postgres.Store, n int) {
	for s.Waiting() != n {
		runtime.Gosched()
	}
}

// offer enqueues in the background.
func offer(ctx context.Context, all *sync.WaitGroup, s *postgres.Store, key string) (told chan error) {
	told = make(chan error, 1)
	all.Go(func() {
		_, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Key: key})
		told <- err
	})
	return told
}

// keys are those of the messages that are there, but for the first, and in how many
// transactions they came.
func keys(t *testing.T, s *postgres.Store, schema string) (found map[string]int, transactions int) {
	t.Helper()
	records, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{})
	must(t, err)
	found = map[string]int{}
	for _, r := range records {
		found[r.Key]++
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	must(t, conn.QueryRow(t.Context(), "select count(distinct tx) from "+schema+".message").Scan(&transactions))
	return found, transactions
}

// TestCallsGoTogether lets calls come while another one runs: they are one transaction,
// which they all share.
func TestCallsGoTogether(t *testing.T) {
	const calls = 40
	list, schema := crowd(t, 1)
	s := list[0]
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "first"})
	must(t, err)
	block := barrier(t, schema)
	var all sync.WaitGroup
	var told []chan error
	for i := range calls {
		told = append(told, offer(t.Context(), &all, s, fmt.Sprint(i)))
	}
	waiting(s, calls-1)
	must(t, block.Rollback(t.Context()))
	all.Wait()
	for _, one := range told {
		must(t, <-one)
	}
	found, transactions := keys(t, s, schema)
	if len(found) != calls+1 || transactions != 3 {
		t.Errorf("%d messages in %d transactions", len(found), transactions)
	}
	sound(t, s)
}

// TestB042_CallersThatLeaveAGroup lets callers leave while they wait for a group, whose
// messages are not there then, and while it commits: these are told that the outcome is unknown.
func TestB042_CallersThatLeaveAGroup(t *testing.T) {
	_, schema := crowd(t, 1)
	// One connection, that knows its statements: to learn them it would wait for a barrier, too.
	s, err := postgres.Open(t.Context(), server.URL+"&pool_max_conns=1", postgres.Options{Schema: schema, NoListen: true})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for _, key := range []string{"first", "second"} {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key})
		must(t, err)
	}
	one := barrier(t, schema)
	var all sync.WaitGroup
	early, leaveEarly := context.WithCancel(t.Context())
	late, leaveLate := context.WithCancel(t.Context())
	defer leaveLate()
	alone := offer(t.Context(), &all, s, "alone")
	stopped(t, one, schema, 1)
	gone := offer(early, &all, s, "gone")
	waiting(s, 1)
	leaveEarly()
	if err := <-gone; nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("who left before the commit began is told %v", err)
	}
	stays, leaves := offer(t.Context(), &all, s, "stays"), offer(late, &all, s, "leaves")
	waiting(s, 2)

	// The second barrier stands between the call that waits and those after it.
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	two, err := conn.Begin(t.Context())
	must(t, err)
	closed := make(chan error, 1)
	all.Go(func() {
		_, err := two.Exec(t.Context(), "lock table "+schema+".message in share mode")
		closed <- err
	})
	stopped(t, one, schema, 2)
	must(t, one.Rollback(t.Context()))
	must(t, <-alone)
	must(t, <-closed)
	waiting(s, 0)
	leaveLate()
	if err := <-leaves; nixie.CodeOf(err) != nixie.CodeOutcomeUnknown {
		t.Errorf("who left while the commit ran is told %v", err)
	}
	must(t, two.Rollback(t.Context()))
	must(t, <-stays)
	all.Wait()
	found, _ := keys(t, s, schema)
	if len(found) != 5 || found["gone"] > 0 {
		t.Errorf("there are %v", found)
	}
	sound(t, s)
}

// TestKnownQueueThatChanges lets another process change queues that this one knows: the
// next call goes by what they are now, and takes none of those with it that go together.
func TestKnownQueueThatChanges(t *testing.T) {
	list, schema := crowd(t, 2)
	s, other := list[0], list[1]
	for _, queue := range []string{"q", "closed", "ordered"} {
		for range 2 {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: queue})
			must(t, err)
		}
	}
	ds, err := other.Claim(t.Context(), "ordered", nixie.Want{Max: 10, Lease: time.Minute})
	must(t, err)
	for _, d := range ds {
		must(t, other.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
	}
	must(t, store.Configure(t.Context(), other, "ordered", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", "in order"))
	must(t, store.Configure(t.Context(), other, "closed", nixie.QueueSettings{Closed: true}, "ann", "no more"))
	block := barrier(t, schema)
	var all sync.WaitGroup
	told := map[string]chan error{}
	for i, queue := range []string{"q", "q", "closed", "ordered"} {
		one := make(chan error, 1)
		told[fmt.Sprint(queue, i)] = one
		all.Go(func() {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: queue, Stream: "s"})
			one <- err
		})
		waiting(s, i)
	}
	must(t, block.Rollback(t.Context()))
	all.Wait()
	for name, one := range told {
		if err := <-one; (err != nil) != (name == "closed2") {
			t.Errorf("%s is told %v", name, err)
		}
	}
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "ordered", Stream: "s"})
	must(t, err)
	ds, err = s.Claim(t.Context(), "ordered", nixie.Want{Max: 10, Lease: time.Minute})
	must(t, err)
	if len(ds) != 1 {
		t.Errorf("%d of one stream were handed out at once", len(ds))
	}
	sound(t, s)
}

// TestGroupsThatAreCut cuts the connection of calls that go together at one byte after
// the other: what each of them is told is true.
func TestGroupsThatAreCut(t *testing.T) {
	const callers, stride = 4, 97
	c := newCutting(t, 0)
	_, err := c.store.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	answers := map[nixie.Code]int{}
	round := 0
	for _, back := range []bool{false, true} {
		for at, passed := 0, 1; at < passed; at += stride {
			round++
			told := make([]error, callers)
			c.plan(at, back)
			atOnce(callers, func(i int) {
				_, told[i] = c.store.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(round, " ", i)})
			})
			passed = max(passed, min(c.passed(), 20*stride))
			c.plan(-1, back)
			for i, err := range told {
				code, done := nixie.CodeOf(err), c.there(&cut{key: fmt.Sprint(round, " ", i)})
				answers[code]++
				if code != nixie.CodeOutcomeUnknown && (code != "" || !done) && (code != nixie.CodeUnavailable || done) {
					t.Errorf("cut at byte %d, answers %v: caller %d is told %v, done %v", at, back, i, err, done)
				}
			}
		}
	}
	t.Logf("answers: %v", answers)
	if answers[""] == 0 || answers[nixie.CodeOutcomeUnknown] == 0 {
		t.Errorf("the cuts were not everywhere: %v", answers)
	}
	sound(t, c.truth)
}
