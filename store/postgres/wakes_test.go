package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/worker"
)

// wakePatience bounds how long a test waits for what takes a millisecond.
const wakePatience = 20 * time.Second

// woken waits for a channel of Wake.
func woken(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(wakePatience):
		t.Fatal("nothing woke it")
	}
}

// listening waits for a listening connection of a schema other than these, and
// returns it.
func listening(t *testing.T, on, schema string, but ...int) int {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), wakePatience)
	defer stop()
	for {
		pids := sessions(ctx, on, schema)
		if at := slices.IndexFunc(pids, func(pid int) bool { return !slices.Contains(but, pid) }); at >= 0 {
			return pids[at]
		}
		if ctx.Err() != nil {
			t.Fatal("no process listens")
		}
	}
}

// sessions are those that listen to a schema and have had their probe back, as the
// server tells it.
func sessions(ctx context.Context, on, schema string) []int {
	c, err := pgx.Connect(ctx, on)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	rows, err := c.Query(ctx,
		`select pid from pg_stat_activity where application_name = 'nixie listen ' || $1 and state = 'idle' and (query like
			'%pg_notify%' or query like '%listens%')`, schema)
	if err != nil {
		return nil
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil
	}
	return pids
}

// rings lets one process add and waits until the other is woken, several times: the
// first time it may be for what it could have missed.
func rings(t *testing.T, from, to *postgres.Store) {
	t.Helper()
	for i := range 4 {
		ch := to.Features().Wake("q")
		_, err := from.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
		must(t, err)
		woken(t, ch)
	}
}

// TestWokenByAnotherProcess says what wakes a process that waits: what others add to
// its queue, once it is committed, and nothing else.
func TestWokenByAnotherProcess(t *testing.T) {
	schema := lend(t)
	a, b := open(t, server.URL, postgres.Options{Schema: schema}), open(t, server.URL, postgres.Options{Schema: schema})
	_ = b.Features().Wake("q")
	listening(t, server.URL, schema)
	other := b.Features().Wake("other")
	rings(t, a, b)
	select {
	case <-other:
		t.Error("a queue is woken by what is added to another")
	default:
	}
	deaf := open(t, with(server.URL, "nixie_listen=off"), postgres.Options{Schema: schema})
	silent := b.Features().Wake("q")
	_, err := deaf.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	must(t, deaf.Close())
	_, err = a.Enqueue(t.Context(), nixie.Message{Queue: "other"})
	must(t, err)
	woken(t, other) // notifications come in their order
	select {
	case <-silent:
		t.Error("one that does not listen told others")
	default:
	}
	_, err = postgres.Open(t.Context(), with(server.URL, "nixie_listen=perhaps"), postgres.Options{})
	if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), `nixie_listen is "perhaps": give on or off`) {
		t.Errorf("told %v", err)
	}
}

// TestWokenByACallersTransaction adds in a transaction of the caller: those who wait are told
// when it has committed.
func TestWokenByACallersTransaction(t *testing.T) {
	schema := lend(t)
	a, b := open(t, server.URL, postgres.Options{Schema: schema}), open(t, server.URL, postgres.Options{Schema: schema})
	_ = b.Features().Wake("q")
	listening(t, server.URL, schema)
	for range 2 {
		here, there := a.Features().Wake("q"), b.Features().Wake("q")
		own := begin(t)
		_, err := a.Tx(own).Enqueue(t.Context(), nixie.Message{Queue: "q"})
		must(t, err)
		select {
		case <-there:
			t.Error("woken before the commit")
		default:
		}
		must(t, own.Commit(t.Context()))
		woken(t, here)
		woken(t, there)
	}
}

// TestB052_CommitsDoNotNotify lets 64 commit at once: what is told to others is told
// once in a while, and all of it.
func TestB052_CommitsDoNotNotify(t *testing.T) {
	const clients, each = 64, 10
	server.Need(t)
	schemas.Lock()
	schema := unusedSchema() // a server may not know yet that the listener of another test is gone
	schemas.Unlock()
	t.Cleanup(func() { dropSchema(t, schema) })
	s := open(t, with(server.URL, "pool_max_conns=16"), postgres.Options{Schema: schema})
	c, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, c.Close(context.WithoutCancel(t.Context()))) }()
	_, err = c.Exec(t.Context(), "listen "+schema)
	must(t, err)
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	s.Noted()
	_, err = c.Exec(t.Context(), "select pg_notify($1, 'none'), pg_advisory_lock_shared(hashtext('nixie listen ' || $1), 0)", schema)
	must(t, err)
	if note, err := c.WaitForNotification(t.Context()); err != nil || note.Payload != "none" {
		t.Errorf("heard %v (%v), where no listener was known", note, err)
	}
	began := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				if _, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, s.Close()) // all is told then
	took := time.Since(began)
	_, err = c.Exec(t.Context(), "select pg_notify($1, 'the end')", schema)
	must(t, err)
	notes := 0
	for {
		note, err := c.WaitForNotification(t.Context())
		must(t, err)
		if note.Payload == "the end" {
			break
		}
		notes++
	}
	if most := int(took/(3*time.Millisecond)) + 2; notes == 0 || notes > most {
		t.Errorf("%d notifications for %d commits in %s, want 1 to %d", notes, clients*each, took, most)
	}
}

// TestB050_DeadListenerIsReplaced makes the listener's connection one that is there
// and passes nothing on. Its silence reveals it.
func TestB050_DeadListenerIsReplaced(t *testing.T) {
	w := newWire(t)
	schema := lend(t)
	warned := make(chan error, 100)
	s := open(t, w.url, postgres.Options{Schema: schema, Warn: func(err error) { warned <- err }})
	s.Probing(50*time.Millisecond, 100*time.Millisecond)
	_ = s.Features().Wake("q")
	first := listening(t, server.URL, schema)
	for deadline := time.Now().Add(wakePatience); !s.Hears(); runtime.Gosched() { // so it knows that it can miss something
		if time.Now().After(deadline) {
			t.Fatal("it hears nothing")
		}
	}
	ch := s.Features().Wake("q")
	w.silence()
	second := listening(t, server.URL, schema, first)
	woken(t, ch) // to ask for what came while no connection listened
	if second == first {
		t.Error("it listens where nothing comes")
	}
	if err := <-warned; !strings.Contains(err.Error(),
		"the connection that listens for work of other processes is lost: the store is asked every 50ms") {
		t.Errorf("warned %v", err)
	}
	w.plan(-1, false) // what was silent ends
	rings(t, open(t, server.URL, postgres.Options{Schema: schema}), s)
}

// TestListenerOutlivesServer kills the server: the listener is there again after it.
func TestListenerOutlivesServer(t *testing.T) {
	own := testservers.OwnPostgres(t)
	a, b := open(t, own.URL, postgres.Options{}), open(t, own.URL, postgres.Options{})
	_ = b.Features().Wake("q")
	listening(t, own.URL, "nixie")
	rings(t, a, b)
	ch := b.Features().Wake("q")
	must(t, own.Kill())
	woken(t, ch)
	for code := nixie.CodeUnavailable; code == nixie.CodeUnavailable || code == nixie.CodeOutcomeUnknown; { // the pool has dead connections
		_, err := a.Queues(t.Context(), store.QueueQuery{})
		code = nixie.CodeOf(err)
	}
	rings(t, a, b)
}

// TestBehindPooler does everything through a pooler that hands out a session for
// each transaction. It says once that no process listens, and limits hold all the same.
func TestBehindPooler(t *testing.T) {
	pooler := server.Pooler(t)
	schema := lend(t)
	_ = open(t, server.URL, postgres.Options{Schema: schema}) // a schema is made by the server itself
	var warned []string
	opts := postgres.Options{Schema: schema, LockWait: 7 * time.Second, Warn: func(err error) { warned = append(warned, err.Error()) }}
	s := open(t, pooler, opts)
	if _, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lock_timeout": "7s", "statement_timeout": "5min",
		"idle_in_transaction_session_timeout": "1min", "jit": "off"} {
		if got, err := s.SettingOfCalls(t.Context(), name); err != nil || got != want {
			t.Errorf("%s is %s in a call, want %s (%v)", name, got, want, err)
		}
	}
	var workers sync.WaitGroup
	for i := range 3 {
		w := open(t, pooler, postgres.Options{Schema: schema, Owner: fmt.Sprint(i)})
		workers.Go(func() {
			for n := 0; n < 100; n++ {
				if _, err := w.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: fmt.Sprint(n % 3)}); err != nil {
					t.Error(err)
				}
				ds, err := w.Claim(t.Context(), "q", nixie.Want{Max: 3, Lease: time.Minute})
				if err != nil {
					t.Error(err)
				}
				settlements := make([]nixie.Settlement, 0, len(ds))
				for _, d := range ds {
					settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
				}
				for _, err := range w.Settle(t.Context(), settlements) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	workers.Wait()
	for range 3 {
		_ = s.Features().Wake("q")
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "is behind a pooler: work that other processes add is found by asking") {
		t.Errorf("warned %q", warned)
	}
	quiet := open(t, with(pooler, "nixie_listen=off"), opts)
	_ = quiet.Features().Wake("q")
	if len(warned) != 1 {
		t.Errorf("warned %q", warned)
	}
	sound(t, s)
	m, err := postgres.NewSchema(pooler, postgres.Options{Schema: schema})
	must(t, err)
	if _, err = m.Up(t.Context(), 0, store.Grants{}); nixie.CodeOf(err) != nixie.CodeInvalid ||
		!strings.Contains(err.Error(), "behind a pooler: migrate by a URL of the server itself") {
		t.Errorf("told %v", err)
	}
}

// TestPickUp measures how long a message that another process adds takes to the
// handler of a worker that waits.
func TestPickUp(t *testing.T) {
	const messages = 200
	schema := lend(t)
	adds := open(t, server.URL, postgres.Options{Schema: schema})
	works := open(t, server.URL, postgres.Options{Schema: schema, Owner: "worker"})
	began := make(chan time.Time)
	w, err := worker.New(worker.Config{Source: store.NewSource(works, "q"), Queue: "q",
		Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
			began <- time.Now()
			return nil
		})})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = w.Run(ctx) })
	var took []time.Duration
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range messages {
		<-time.After(time.Duration(5+rng.IntN(10)) * time.Millisecond) // so that it is idle in between
		at := time.Now()
		_, err := adds.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
		must(t, err)
		took = append(took, (<-began).Sub(at))
	}
	stop()
	all.Wait()
	slices.Sort(took)
	t.Logf("pick-up of %d messages: p50 %s, p99 %s, longest %s", messages, took[messages/2], took[messages*99/100], took[messages-1])
	if half := took[messages/2]; half > 25*time.Millisecond { // without hints it is half of what a poll takes
		t.Errorf("half of the messages took %s or more: no claim was woken", half)
	}
}
