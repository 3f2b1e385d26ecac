package histories_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/histories"
	"github.com/nixie-go/nixie/store"
)

// fewHistories bounds how many a broken store may take to be found out.
const fewHistories = 15

// TestFindsPlantedDefects breaks a store in ways that stores break: each is found within
// few histories.
func TestFindsPlantedDefects(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks func() defect
		says   string // part of what is found
		sqlite bool
	}{
		"a settlement ignores the number of the lease": {breaks: noFence, says: "no order of these calls"},
		"a message is handed to two":                   {breaks: twoHolders, says: "no order of these calls"},
		"an acknowledged message is dropped":           {breaks: losing, says: "is lost"},
		"a refused message comes in": {breaks: onEnqueue(func(m *nixie.Message) { m.DedupeKey = "" }),
			says: "dedupe key"},
		"a stream is none": {breaks: onEnqueue(func(m *nixie.Message) { m.Stream = "" }),
			says: "stream stream-"},
		"a delay is forgotten": {breaks: onEnqueue(func(m *nixie.Message) { m.Delay = 0 }),
			says: "no order of these calls"},
		"a cancel does nothing":                         {breaks: idleCancel, says: "no order of these calls"},
		"what follows does not wait for its settlement": {breaks: early, says: "to follow"},
		"half of what follows is forgotten":             {breaks: half, says: "to follow"},
		"an effect stays without its completion":        {breaks: lonelyEffect, says: "effect", sqlite: true},
	} {
		t.Run(name, func(t *testing.T) {
			harness := inMemory(tc.breaks())
			if tc.sqlite {
				harness = onSQLite(tc.breaks())
			}
			seed, problems := histories.Find(t, harness, fewHistories)
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, tc.says) }) {
				t.Fatalf("%d histories, %q", seed, problems)
			}
			t.Logf("found in history %d", seed)
		})
	}
}

// broken is a store with other methods for some.
type broken struct {
	store.Store
	claim   func(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error)
	settle  func(ctx context.Context, sts []nixie.Settlement) []error
	enqueue func(ctx context.Context, ms ...nixie.Message) ([]nixie.Receipt, error)
	amend   func(ctx context.Context, ids []nixie.ID, c store.Change) []error
}

func instead(s store.Store) *broken {
	return &broken{Store: s, claim: s.Claim, settle: s.Settle, enqueue: s.Enqueue, amend: s.Amend}
}

func (b *broken) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	return b.claim(ctx, queue, want)
}
func (b *broken) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	return b.settle(ctx, sts)
}
func (b *broken) Enqueue(ctx context.Context, ms ...nixie.Message) ([]nixie.Receipt, error) {
	return b.enqueue(ctx, ms...)
}
func (b *broken) Amend(ctx context.Context, ids []nixie.ID, c store.Change) []error {
	return b.amend(ctx, ids, c)
}

// newest remembers the newest lease of each message over all clients.
type newest struct {
	mu sync.Mutex
	of map[nixie.ID]*nixie.Delivery
}

func (n *newest) keep(ds []*nixie.Delivery) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range ds {
		n.of[d.ID] = d
	}
}

func noFence() defect {
	known := &newest{of: map[nixie.ID]*nixie.Delivery{}}
	return func(l *histories.Local) {
		b := instead(l.Store)
		s := l.Store
		b.claim = func(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
			ds, err := s.Claim(ctx, queue, want)
			known.keep(ds)
			return ds, err
		}
		b.settle = func(ctx context.Context, sts []nixie.Settlement) []error {
			known.mu.Lock()
			for i := range sts {
				sts[i].Delivery = known.of[sts[i].Delivery.ID]
			}
			known.mu.Unlock()
			return s.Settle(ctx, sts)
		}
		l.Store = b
	}
}

func twoHolders() defect {
	var mu sync.Mutex
	var before []*nixie.Delivery
	claims := 0
	return func(l *histories.Local) {
		b := instead(l.Store)
		s := l.Store
		b.claim = func(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
			ds, err := s.Claim(ctx, queue, want)
			mu.Lock()
			defer mu.Unlock()
			if claims++; claims%10 == 0 && err == nil && len(before) > 0 {
				return before, nil
			}
			if len(ds) > 0 {
				before = ds
			}
			return ds, err
		}
		l.Store = b
	}
}

func losing() defect {
	var mu sync.Mutex
	calls := 0
	return func(l *histories.Local) {
		b := instead(l.Store)
		s := l.Store
		b.enqueue = func(ctx context.Context, ms ...nixie.Message) ([]nixie.Receipt, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls%10 > 0 {
				return s.Enqueue(ctx, ms...)
			}
			receipts := make([]nixie.Receipt, len(ms))
			for i := range ms {
				receipts[i].ID = ms[i].ID
			}
			return receipts, nil
		}
		l.Store = b
	}
}

// onEnqueue changes messages on their way in.
func onEnqueue(change func(*nixie.Message)) func() defect {
	return func() defect {
		return func(l *histories.Local) {
			b := instead(l.Store)
			s := l.Store
			b.enqueue = func(ctx context.Context, ms ...nixie.Message) ([]nixie.Receipt, error) {
				for i := range ms {
					change(&ms[i])
				}
				return s.Enqueue(ctx, ms...)
			}
			l.Store = b
		}
	}
}

func idleCancel() defect {
	return func(l *histories.Local) {
		b := instead(l.Store)
		s := l.Store
		b.amend = func(ctx context.Context, ids []nixie.ID, c store.Change) []error {
			if c.Verb == store.Cancel {
				return make([]error, len(ids))
			}
			return s.Amend(ctx, ids, c)
		}
		l.Store = b
	}
}

func lonelyEffect() defect {
	return func(l *histories.Local) {
		begin := l.Begin
		l.Begin = func(ctx context.Context) (histories.Tx, error) {
			tx, err := begin(ctx)
			tx.Rollback = tx.Commit
			return tx, err
		}
	}
}

func early() defect {
	return onSettle(func(s store.Store, st *nixie.Settlement) {
		_, _ = s.Enqueue(context.Background(), st.Then...)
		st.Then = nil
	})
}

func half() defect {
	return onSettle(func(_ store.Store, st *nixie.Settlement) { st.Then = st.Then[:len(st.Then)/2] })
}

// onSettle changes settlements on their way in.
func onSettle(change func(store.Store, *nixie.Settlement)) defect {
	return func(l *histories.Local) {
		b := instead(l.Store)
		s := l.Store
		b.settle = func(ctx context.Context, sts []nixie.Settlement) []error {
			for i := range sts {
				change(s, &sts[i])
			}
			return s.Settle(ctx, sts)
		}
		l.Store = b
	}
}
