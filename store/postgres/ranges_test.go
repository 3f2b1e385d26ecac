package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// market is producers whose transactions overlap in every order, and consumers that
// are to get each message that was committed, and no other.
type market struct {
	*testing.T
	ctx    context.Context
	stop   context.CancelFunc
	schema string

	mu    sync.Mutex
	sold  map[string]int // how often the end of a message was accepted, by key
	given map[string]bool
	open  sync.WaitGroup // producers

	coming atomic.Int64 // committed and not ended
	over   atomic.Bool  // no producer is left
}

func (m *market) store(owner string) *postgres.Store {
	s, err := postgres.Open(m.ctx, server.URL, postgres.Options{Schema: m.schema, Owner: owner})
	m.must(err)
	return s
}

// must ends the goroutine and the whole market at an error.
func (m *market) must(err error) {
	m.Helper()
	if err != nil {
		m.Error(err)
		m.stop()
		runtime.Goexit()
	}
}

// stall is a transaction that has messages and is not over yet.
type stall struct {
	tx   pgx.Tx
	conn *pgx.Conn
	keys []string
}

// produce keeps several transactions open and ends them in any order, one of ten by
// a rollback.
func (m *market) produce(s *postgres.Store, seed uint64, rounds int) {
	defer m.open.Done()
	rng := rand.New(rand.NewPCG(seed, 3))
	var stalls []*stall
	for round := range rounds {
		stalls = append(stalls, m.offer(s, rng, fmt.Sprintf("%d.%d", seed, round)))
		if len(stalls) > 4 || round == rounds-1 {
			rng.Shuffle(len(stalls), func(i, j int) { stalls[i], stalls[j] = stalls[j], stalls[i] })
			keep := rng.IntN(3)
			if round == rounds-1 {
				keep = 0
			}
			for _, st := range stalls[keep:] {
				m.close(st, rng.IntN(10) > 0)
			}
			stalls = stalls[:keep]
		}
	}
}

// offer enqueues in a transaction, some of it in savepoints that are undone.
func (m *market) offer(s *postgres.Store, rng *rand.Rand, name string) *stall {
	conn, err := pgx.Connect(m.ctx, server.URL)
	m.must(err)
	tx, err := conn.Begin(m.ctx)
	m.must(err)
	st := &stall{tx: tx, conn: conn}
	for part := range 1 + rng.IntN(3) {
		inner, err := tx.Begin(m.ctx)
		m.must(err)
		var keys []string
		ms := make([]nixie.Message, 1+rng.IntN(60))
		for i := range ms {
			keys = append(keys, fmt.Sprintf("%s.%d.%d", name, part, i))
			ms[i] = nixie.Message{Queue: "q", Key: keys[i], Priority: []int{0, 0, 0, 0, 1}[rng.IntN(5)]}
		}
		_, err = s.Tx(inner).Enqueue(m.ctx, ms...)
		m.must(err)
		if rng.IntN(5) == 0 {
			m.must(inner.Rollback(m.ctx))
			continue
		}
		m.must(inner.Commit(m.ctx))
		st.keys = append(st.keys, keys...)
	}
	return st
}

func (m *market) close(st *stall, commit bool) {
	if commit {
		m.mu.Lock()
		for _, key := range st.keys {
			m.given[key] = true
		}
		m.mu.Unlock()
		m.coming.Add(int64(len(st.keys)))
		m.must(st.tx.Commit(m.ctx))
	} else {
		m.must(st.tx.Rollback(m.ctx))
	}
	m.must(st.conn.Close(m.ctx))
}

// consume works off what comes until nothing is left. Some of it is retried, given
// back, extended or buried, and now and then the whole process dies with what it holds.
func (m *market) consume(owner string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	s := m.store(owner)
	defer func() { m.must(s.Close()) }()
	for m.ctx.Err() == nil && (!m.over.Load() || m.coming.Load() > 0) {
		ds, err := s.Claim(m.ctx, "q", nixie.Want{Max: 1 + rng.IntN(150), Lease: time.Hour})
		m.must(err)
		if rng.IntN(40) == 0 {
			m.must(s.Crash())
			s = m.store(owner)
			continue
		}
		if rng.IntN(4) == 0 {
			for _, err := range s.Extend(m.ctx, ds[:rng.IntN(len(ds)+1)], time.Hour) {
				m.must(err)
			}
		}
		for len(ds) > 0 { // not all at once
			some := ds[:1+rng.IntN(len(ds))]
			ds = ds[len(some):]
			m.settle(s, rng, some)
		}
	}
}

func (m *market) settle(s *postgres.Store, rng *rand.Rand, ds []*nixie.Delivery) {
	list := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		list[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		switch f := (&nixie.Failure{FailedAt: time.Now(), Text: "no"}); rng.IntN(60) {
		case 0:
			list[i].Verb, list[i].Failure = nixie.Retry, f
		case 1:
			list[i].Verb = nixie.Release
		case 2:
			list[i] = nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: f,
				Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen}}
		}
	}
	for i, err := range s.Settle(m.ctx, list) {
		m.must(err)
		if list[i].Verb == nixie.Complete || list[i].Verb == nixie.Bury {
			m.mu.Lock()
			m.sold[ds[i].Key]++
			m.mu.Unlock()
			m.coming.Add(-1)
		}
	}
}

// TestRangesAmongTransactions hands out by range what transactions bring that overlap,
// are undone in whole and in part, and stay open long: every message that was committed
// ends once, and no other was ever seen.
func TestRangesAmongTransactions(t *testing.T) {
	rounds, patience := 40, time.Minute
	if proof.IsDeep() {
		rounds, patience = 600, 20*time.Minute
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	m := &market{T: t, ctx: ctx, stop: stop, schema: newSchema(t), sold: map[string]int{}, given: map[string]bool{}}
	t.Cleanup(func() { dropSchema(t, m.schema) })
	maker := m.store("maker")
	defer func() { must(t, maker.Close()) }()
	must(t, store.Configure(ctx, maker, "q", nixie.QueueSettings{}, "ann", "")) // who makes a queue in a transaction holds up the others
	long := m.offer(maker, rand.New(rand.NewPCG(1, 1)), "long")
	var consumers sync.WaitGroup
	for i := range 3 {
		consumers.Go(func() { m.consume(fmt.Sprint("consumer ", i), uint64(i)) })
	}
	for i := range 4 {
		m.open.Add(1)
		go m.produce(maker, uint64(i), rounds)
	}
	m.open.Wait()
	for m.coming.Load() > 0 && ctx.Err() == nil { // while the long one is open
		must(t, store.Configure(ctx, maker, "other", nixie.QueueSettings{}, "ann", ""))
	}
	if !t.Failed() {
		m.close(long, true)
	}
	m.over.Store(true)
	consumers.Wait()
	if n := m.coming.Load(); n > 0 {
		t.Fatalf("%d messages that were committed never came", n)
	}
	for key := range m.given {
		if m.sold[key] != 1 {
			t.Errorf("message %s ended %d times", key, m.sold[key])
		}
	}
	for key := range m.sold {
		if !m.given[key] {
			t.Errorf("message %s was never committed", key)
		}
	}
	t.Logf("%d messages in overlapping transactions: each ended once", len(m.given))
	report, err := maker.Check(ctx)
	must(t, err)
	for _, v := range report.Violations {
		t.Errorf("%s: %s %s", v.Rule, v.Subject, v.Text)
	}
}

// TestSettledWithWhatIsOver settles a message together with one that is settled
// already, in a call whose statements are undone for that: what was told is stored.
func TestSettledWithWhatIsOver(t *testing.T) {
	list, _ := crowd(t, 1)
	s := list[0]
	for i := range 3 {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i / 2})
		must(t, err)
	}
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 3, Lease: time.Hour})
	must(t, err)
	byKey := map[string]nixie.Settlement{}
	for _, d := range ds {
		byKey[d.Key] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	}
	must(t, s.Settle(t.Context(), []nixie.Settlement{byKey["0"]})[0])
	errs := s.Settle(t.Context(), []nixie.Settlement{byKey["2"], byKey["0"]})
	if errs[0] != nil || nixie.CodeOf(errs[1]) != nixie.CodeLeaseLost {
		t.Errorf("told %v", errs)
	}
	left, _, err := s.Messages(t.Context(), nixie.Filter{States: []nixie.State{nixie.Leased}}, store.Page{})
	must(t, err)
	if len(left) != 1 || left[0].Key != "1" {
		t.Errorf("%d are leased still", len(left))
	}
	sound(t, s)
}

// TestALeaseEndsDuringAClaim lets the lease of another queue end after a claim has looked for such
// leases. The claim handed out nothing then, although its message was there.
func TestALeaseEndsDuringAClaim(t *testing.T) {
	clock := storetest.NewClock()
	var late atomic.Bool // from the next look at the clock on, the lease is over
	list, _ := crowdAt(t, 1, func() time.Time {
		now := clock.Now()
		if late.Swap(false) {
			clock.Advance(time.Hour)
		}
		return now
	})
	s := list[0]
	for _, queue := range [...]string{"q", "other"} {
		_, err := s.Enqueue(t.Context(), nixie.Message{Queue: queue})
		must(t, err)
	}
	handed(t, s, 1)
	late.Store(true)
	ds, err := s.Claim(t.Context(), "other", nixie.Want{Max: 1, Lease: time.Minute})
	must(t, err)
	if len(ds) != 1 {
		t.Fatal("the claim passed over a message that was there")
	}
}
