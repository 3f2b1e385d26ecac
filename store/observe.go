package store

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// Observe returns a store that tells an observer what it accepts, which letters are moved, and what
// is removed for good. Without an observer it returns the store itself. It does not see what a
// transaction of the caller enqueues.
//
// If the observer wants moves, each call of Resolve first reads its letters.
func Observe(st Store, o *nixie.Observer) Store {
	if o == nil || o.Enqueued == nil && o.Moved == nil && o.Pruned == nil {
		return st
	}
	seen := observed{st, o.Complete(), o.Moved != nil}
	if log, ok := st.(lease.ProgressLog); ok {
		return struct {
			observed
			lease.ProgressLog
		}{seen, log}
	}
	return seen
}

// observed is a store with its observer.
type observed struct {
	Store
	o     *nixie.Observer
	moves bool // it wants to hear of letters that are moved
}

// Enqueue implements [Queue].
func (s observed) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	receipts, err := s.Store.Enqueue(ctx, messages...)
	for from := 0; from < len(receipts); {
		to, added := from, 0
		for ; to < len(receipts) && messages[to].Queue == messages[from].Queue; to++ {
			if !receipts[to].Duplicate {
				added++
			}
		}
		if added > 0 {
			s.o.Enqueued(messages[from].Queue, added)
		}
		from = to
	}
	return receipts, err
}

// Settle implements [Queue]. It counts also messages that the store had already.
func (s observed) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := s.Store.Settle(ctx, settlements)
	for i, err := range errs {
		for _, m := range settlements[i].Then {
			if err == nil {
				s.o.Enqueued(m.Queue, 1)
			}
		}
	}
	return errs
}

// Resolve implements [DeadLetters].
func (s observed) Resolve(ctx context.Context, list []Resolution) []error {
	if !s.moves {
		return s.Store.Resolve(ctx, list)
	}
	before := s.letters(ctx, list)
	errs := s.Store.Resolve(ctx, list)
	moves := make([]nixie.LetterMove, 0, len(errs))
	for i, err := range errs {
		r := &list[i]
		l := before[r.Letter]
		if l == nil {
			l = &nixie.Letter{ID: r.Letter}
		}
		moves = append(moves, nixie.LetterMove{Letter: l, Event: string(r.Event), Actor: r.Actor, Err: err})
	}
	s.o.Moved(moves)
	return errs
}

// letters returns the letters of resolutions as they are now. It leaves out what it cannot read: an
// observer is no reason to fail.
func (s observed) letters(ctx context.Context, list []Resolution) map[nixie.ID]*nixie.Letter {
	ids := make([]nixie.ID, len(list))
	for i := range list {
		ids[i] = list[i].Letter
	}
	found, _, err := s.Letters(ctx, nixie.Filter{IDs: ids}, Page{Limit: len(ids) + 1})
	if len(ids) == 0 || err != nil {
		return nil
	}
	by := make(map[nixie.ID]*nixie.Letter, len(found))
	for i := range found {
		by[found[i].ID] = &found[i]
	}
	return by
}

// Prune implements [Keeper].
func (s observed) Prune(ctx context.Context, p Pruning) (Pruned, error) {
	done, err := s.Store.Prune(ctx, p)
	if n := done.Messages + done.Letters + done.Entries + done.Keys; n > 0 && !p.DryRun {
		s.o.Pruned(n)
	}
	return done, err
}

// Purge implements [Overview].
func (s observed) Purge(ctx context.Context, queue string, f nixie.Filter, most int, actor, reason string) (int, error) {
	n, err := s.Store.Purge(ctx, queue, f, most, actor, reason)
	if n > 0 {
		s.o.Pruned(int64(n))
	}
	return n, err
}
