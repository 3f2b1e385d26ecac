package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// mix is a random mix of transactions that stay open and of what goes on at the same time, in few
// strict streams, one step after the other. It knows what has to come next.
type mix struct {
	*testing.T
	st      *postgres.Store
	schema  string
	rng     *rand.Rand
	pool    *pgxpool.Pool
	open    []*openTx
	live    map[string][]int           // what has not ended of each stream, in order
	out     map[string]*nixie.Delivery // of each stream
	number  int
	advance func(time.Duration)
}

// openTx is one that has added.
type openTx struct {
	tx    pgx.Tx
	added map[string][]int
}

const mixedStreams = 4

// free is a stream that no open transaction is adding to.
func (m *mix) free() string {
	s := fmt.Sprint("s", m.rng.IntN(mixedStreams))
	if slices.ContainsFunc(m.open, func(o *openTx) bool { return o.added[s] != nil }) {
		return ""
	}
	return s
}

// message is a new one.
func (m *mix) message(stream string) nixie.Message {
	m.number++
	return nixie.Message{Queue: "q", Stream: stream, Key: fmt.Sprint(m.number)}
}

// step does one thing.
func (m *mix) step() {
	ctx := m.Context()
	switch m.rng.IntN(10) {
	case 0, 1: // a transaction adds, and stays open
		stream := m.free()
		if stream == "" {
			return
		}
		if len(m.open) == 0 || m.rng.IntN(2) == 0 {
			tx, err := m.pool.Begin(ctx)
			must(m.T, err)
			m.open = append(m.open, &openTx{tx, map[string][]int{}})
		}
		o := m.open[m.rng.IntN(len(m.open))]
		for range 1 + m.rng.IntN(2) {
			to := nixie.Enqueuer(m.st.Tx(o.tx))
			if m.rng.IntN(2) == 0 {
				to = bySQL{o.tx, m.schema}
			}
			_, err := to.Enqueue(ctx, m.message(stream))
			must(m.T, err)
			o.added[stream] = append(o.added[stream], m.number)
		}
	case 2, 3: // one ends
		if len(m.open) == 0 {
			return
		}
		i := m.rng.IntN(len(m.open))
		o := m.open[i]
		m.open = slices.Delete(m.open, i, i+1)
		if m.rng.IntN(4) == 0 {
			must(m.T, o.tx.Rollback(ctx))
			return
		}
		must(m.T, o.tx.Commit(ctx))
		for stream, added := range o.added {
			m.live[stream] = append(m.live[stream], added...)
		}
	case 4: // one is added at once
		if stream := m.free(); stream != "" {
			given := m.message(stream)
			if m.rng.IntN(3) == 0 {
				given.Priority = 1
			}
			_, err := m.st.Enqueue(ctx, given)
			must(m.T, err)
			m.live[stream] = append(m.live[stream], m.number)
		}
	case 5, 6:
		m.claim()
	case 7, 8:
		m.settle()
	case 9: // some time passes
		m.advance(2 * time.Minute)
		m.st.Beat(ctx)
		sound(m.T, m.st)
	}
}

// claim expects the first of each stream, in two claims: one may recompute heads that the next
// hands out.
func (m *mix) claim() {
	m.Helper()
	for range 2 {
		ds, err := m.st.Claim(m.Context(), "q", nixie.Want{Max: 100, Lease: nixie.MaxLease})
		must(m.T, err)
		for _, d := range ds {
			if n, err := strconv.Atoi(d.Key); err != nil || m.out[d.Stream] != nil || len(m.live[d.Stream]) == 0 ||
				m.live[d.Stream][0] != n {
				m.Fatalf("message %s of %s came, out is %v, to come are %v", d.Key, d.Stream, m.out[d.Stream], m.live[d.Stream])
			}
			m.out[d.Stream] = d
		}
	}
	for stream, live := range m.live {
		if len(live) > 0 && m.out[stream] == nil {
			m.Fatalf("message %d of %s did not come", live[0], stream)
		}
	}
}

// settle ends or gives back some of what is out, in one call.
func (m *mix) settle() {
	m.Helper()
	var list []nixie.Settlement
	for _, stream := range slices.Sorted(maps.Keys(m.out)) {
		d, st := m.out[stream], nixie.Settlement{Verb: nixie.Complete}
		if m.rng.IntN(3) == 0 {
			continue
		}
		st.Delivery = d
		switch m.rng.IntN(8) {
		case 0:
			st.Verb = nixie.Release
		case 1:
			st.Verb, st.Failure = nixie.Retry, &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}
		case 2:
			st.Verb = nixie.Discard
		case 3:
			must(m.T, m.st.Extend(m.Context(), []*nixie.Delivery{d}, nixie.MaxLease)[0])
		case 4: // by hand
			must(m.T, m.st.Amend(m.Context(), []nixie.ID{d.ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0])
			m.ended(stream)
			continue
		}
		list = append(list, st)
		if st.Verb == nixie.Complete || st.Verb == nixie.Discard {
			m.ended(stream)
		}
		delete(m.out, stream)
	}
	for _, err := range m.st.Settle(m.Context(), list) {
		must(m.T, err)
	}
}

// ended notes that what is out of a stream has ended.
func (m *mix) ended(stream string) {
	m.live[stream] = m.live[stream][1:]
	delete(m.out, stream)
}

// TestCallersAddToStreams lets transactions of callers add to strict streams and end in any order,
// while claims, settlements and crashes go on there: no call waits for them, and each stream is
// handed out in its order, whenever there is something to hand out.
func TestCallersAddToStreams(t *testing.T) {
	proof.Run(t, "callers-postgres", func(t *testing.T, seed uint64) int {
		const steps = 150
		schema := newSchema(t)
		defer dropSchema(t, schema)
		pool, err := pgxpool.New(t.Context(), server.URL+"&pool_max_conns=8")
		must(t, err)
		defer pool.Close()
		ahead := new(atomic.Int64) // of the clock of the server, by which SQL enqueues
		s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, LockWait: 100 * time.Millisecond,
			Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		must(t, err)
		defer func() { must(t, s.Close()) }()
		m := &mix{T: t, st: s, schema: schema, rng: rand.New(rand.NewPCG(seed, 25)), pool: pool, live: map[string][]int{},
			out: map[string]*nixie.Delivery{}, advance: func(by time.Duration) { ahead.Add(int64(by)) }}
		m.advance(time.Second)
		defer func() {
			for _, o := range m.open {
				must(t, o.tx.Rollback(context.Background()))
			}
		}()
		must(t, store.Configure(t.Context(), s, "q", strict(), "ann", ""))
		for range steps {
			m.step()
		}
		for len(m.open) > 0 {
			m.step()
		}
		m.claim()
		sound(t, s)
		return steps
	})
}
