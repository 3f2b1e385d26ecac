package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// PruneStep is a part of pruning. The steps of a queue follow each other in this order, after those
// of no queue.
type PruneStep int64

// The steps of a queue: its messages without letters, its letters with their messages, its audit.
const (
	PruneMessages PruneStep = iota
	PruneRanges             // more messages, which a driver keeps by range
	PruneLetters
	PruneAudit
	pruneSteps
)

// The steps of no queue: the keys of inboxes, documents.
const (
	PruneKeys PruneStep = iota
	PruneDocuments
	pruneFirst
)

// Part names the rows of one call of [Tx.Remove].
type Part struct {
	Queue  *Queue // nil: of no queue
	Step   PruneStep
	Cutoff int64 // what ended up to this moment goes
	After  int64 // where to go on, as Removed has it; 0 at the start of a step
	Most   int   // how many rows to meet
	Dry    bool  // count only
}

// Removed tells what became of a part.
type Removed struct {
	Met     int        // how many rows; fewer than Most: the step is over
	Gone    int64      // how many of what is counted
	After   int64      // where to go on
	Letters []nixie.ID // that are gone
	Newest  int64      // entry of an audit that is gone
}

// Prune implements store.Keeper.
func (e *Engine) Prune(ctx context.Context, p store.Pruning) (done store.Pruned, err error) {
	if err := p.Check(); err != nil {
		return done, err
	}
	from, err := parsePruneCursor(p.Cursor)
	if err != nil {
		return done, err
	}
	err = e.driver.Update(ctx, How{Reads: p.DryRun}, func(tx Tx) error {
		facts, err := tx.Load(&Want{Pruning: true})
		if err != nil {
			return err
		}
		pr := pruning{call: call{Facts: facts}, tx: tx, dry: p.DryRun, left: p.Limit, at: from}
		if p.Resume { // another version may have kept what is none of ours: then it begins again
			if pr.at, err = parsePruneCursor(facts.PrunedTo); err != nil {
				pr.at = pruneCursor{}
			}
		}
		if err := pr.run(); err != nil {
			return err
		}
		if done = pr.done; p.DryRun {
			return nil
		}
		if p.Resume {
			pr.changes.PrunedTo = &done.Next
		}
		return tx.Write(&pr.changes)
	})
	return done, err
}

// pruneCursor says where a call goes on: in a step of a queue, or of no queue, whose number is 0.
type pruneCursor struct {
	queue int64
	step  PruneStep
	after int64
}

func (p pruneCursor) String() string { return fmt.Sprintf("%d.%d.%d", p.queue, p.step, p.after) }

func parsePruneCursor(cursor string) (p pruneCursor, err error) {
	if cursor == "" {
		return p, nil
	}
	_, err = fmt.Sscanf(cursor, "%d.%d.%d", &p.queue, &p.step, &p.after)
	if err != nil || p.String() != cursor || p.queue < 0 || p.step < 0 || p.step >= p.steps() || p.after < 0 {
		return p, store.BadCursor(cursor)
	}
	return p, nil
}

// steps returns the number of steps of a queue, or of no queue.
func (p pruneCursor) steps() PruneStep {
	if p.queue == 0 {
		return pruneFirst
	}
	return pruneSteps
}

// pruning is one call of Prune.
type pruning struct {
	call
	tx   Tx
	dry  bool
	left int // rows to meet
	at   pruneCursor
	done store.Pruned
}

// run prunes one step after the other until it has met enough rows.
func (p *pruning) run() error {
	for p.left > 0 {
		q, err := p.queue()
		if err != nil || p.at.queue > 0 && q == nil {
			return err
		}
		part := Part{Queue: q, Step: p.at.step, After: p.at.after, Most: p.left, Dry: p.dry}
		over := true
		if kept := p.kept(q); kept != nixie.Forever {
			part.Cutoff = p.Now - int64(kept)
			if over, err = p.step(part, kept); err != nil {
				return err
			}
		}
		if !over {
			continue
		}
		p.at.step, p.at.after = p.at.step+1, 0
		if p.at.step == p.at.steps() {
			p.at = pruneCursor{queue: p.at.queue + 1}
		}
	}
	p.done.Next = p.at.String()
	return nil
}

// queue finds the queue of the cursor, or the next one that there is.
func (p *pruning) queue() (*Queue, error) {
	if p.at.queue == 0 {
		return nil, nil
	}
	facts, err := p.tx.Load(&Want{From: p.at.queue})
	if err != nil {
		return nil, err
	}
	if q := facts.Next; q != nil && q.Number != p.at.queue {
		p.at = pruneCursor{queue: q.Number}
	}
	return facts.Next, nil
}

// kept returns how long the rows of a step are kept.
func (p *pruning) kept(q *Queue) time.Duration {
	if q == nil {
		return [...]time.Duration{PruneKeys: store.InboxRetention, PruneDocuments: 0}[p.at.step]
	}
	messages, letters, audit := q.Settings.Kept()
	return [...]time.Duration{messages, messages, letters, audit}[p.at.step]
}

// step prunes rows of one step, and reports whether the step is over.
func (p *pruning) step(part Part, kept time.Duration) (over bool, err error) {
	r, err := p.tx.Remove(part)
	if err != nil {
		return false, err
	}
	p.left, p.at.after = p.left-r.Met, r.After
	*p.counted(part) += r.Gone
	if !p.dry {
		for _, id := range r.Letters {
			p.recordPruned(part.Queue, store.OnPurge, id, store.PrunedLetter(kept))
		}
		if r.Newest > 0 {
			p.recordPruned(part.Queue, store.OnPrune, nixie.ID{}, store.PrunedEntries(r.Newest, kept))
		}
	}
	return r.Met < part.Most, nil
}

// counted returns what counts the rows of a part.
func (p *pruning) counted(part Part) *int64 {
	d := &p.done
	if part.Queue == nil {
		return [...]*int64{PruneKeys: &d.Keys, PruneDocuments: &d.Documents}[part.Step]
	}
	return [...]*int64{&d.Messages, &d.Messages, &d.Letters, &d.Entries}[part.Step]
}

func (p *pruning) recordPruned(q *Queue, on store.Event, subject nixie.ID, reason string) {
	p.record(q.Number, store.AuditEntry{Actor: lifecycle.System, Event: on, Subject: subject, Reason: reason})
}
