package memory

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Prune removes data that is older than its retention. The cursor counts the rows of earlier steps
// that a dry run left.
func (s *Store) Prune(ctx context.Context, p store.Pruning) (done store.Pruned, err error) {
	if err := p.Check(); err != nil {
		return done, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return done, err
	}
	defer s.mu.Unlock()
	cursor := p.Cursor
	if p.Resume {
		cursor = s.pruneAt
	}
	pr := pruner{Store: s, now: now, dry: p.DryRun, left: p.Limit}
	if cursor != "" {
		if pr.skip, err = strconv.Atoi(cursor); err != nil || pr.skip < 0 {
			return done, store.BadCursor(cursor)
		}
	}
	next := pr.skip + p.Limit
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		pr.queue(s.queues[name])
	}
	pr.documents()
	if pr.more && p.DryRun {
		pr.done.Next = strconv.Itoa(next)
	} else if pr.more {
		pr.done.Next = "0" // the rows of this step are removed
	}
	if p.Resume {
		s.pruneAt = pr.done.Next
	}
	return pr.done, nil
}

// pruner is one step of pruning.
type pruner struct {
	*Store
	now        time.Time
	dry        bool
	skip, left int
	more       bool // something is left for the next step
	done       store.Pruned
}

// takes reports whether a row has outlived its retention and belongs to this step.
func (p *pruner) takes(ended time.Time, kept time.Duration) bool {
	switch {
	case kept == nixie.Forever || ended.IsZero() || ended.After(p.now.Add(-kept)):
		return false
	case p.skip > 0:
		p.skip--
		return false
	case p.left == 0:
		p.more = true
		return false
	}
	p.left--
	return true
}

func (p *pruner) queue(q *queue) {
	messages, letters, audit := q.settings.Kept()
	entries := len(q.chain)
	for _, m := range slices.Clone(q.all) {
		if m.letter == nil && p.takes(m.EndedAt, messages) {
			p.message(q, m)
		}
		if m.letter != nil && p.takes(m.letter.ResolvedAt, letters) {
			p.letter(q, m.letter, letters)
		}
	}
	p.audit(q, entries, audit)
}

// documents removes those that have expired.
func (p *pruner) documents() {
	for key, d := range p.Store.documents {
		if p.takes(d.Expires, 0) {
			p.done.Documents++
			if !p.dry {
				delete(p.Store.documents, key)
			}
		}
	}
}

func (p *pruner) message(q *queue, m *message) {
	p.done.Messages++
	if !p.dry {
		q.pruned++
		p.removeMessage(m)
	}
}

func (p *pruner) letter(q *queue, l *letter, kept time.Duration) {
	p.done.Letters++
	if !p.dry {
		q.pruned++
		p.removeLetter(p.now, l, nixie.ID{})
		q.record(p.now, lifecycle.System, store.OnPurge, l.ID, store.PrunedLetter(kept))
	}
}

// audit removes the oldest entries. The newest entry from before this step always stays, so that a
// dry run gives the same numbers.
func (p *pruner) audit(q *queue, entries int, kept time.Duration) {
	n := 0
	for i := range max(entries-1, 0) {
		if p.takes(q.chain[i].At, kept) {
			n++
		}
	}
	if p.done.Entries += int64(n); n == 0 || p.dry {
		return
	}
	newest := q.chain[n-1].Number
	q.chain = slices.Clone(q.chain[n:])
	q.record(p.now, lifecycle.System, store.OnPrune, nixie.ID{}, store.PrunedEntries(newest, kept))
}
