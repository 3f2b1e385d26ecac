package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Prune implements store.Keeper.
func (s *Store) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	if err := p.Check(); err != nil {
		return store.Pruned{}, err
	}
	at, err := parsePruneCursor(p.Cursor)
	if err != nil {
		return store.Pruned{}, err
	}
	var done store.Pruned
	if p.DryRun {
		now := s.now()
		err = s.read(ctx, func(c conn) error {
			done, err = (&pruner{queries: queries{c}, now: now, left: p.Limit, at: at}).run()
			return err
		})
		return done, err
	}
	err = s.write(ctx, 0, func(t *tx) error {
		from := at
		if p.Resume {
			if from, err = t.keptCursor(); err != nil {
				return err
			}
		}
		if done, err = (&pruner{queries: t.queries, t: t, now: t.now, left: p.Limit, at: from}).run(); err != nil || !p.Resume {
			return err
		}
		return t.run("insert into meta (name, value) values ('prune', ?) on conflict do update set value = excluded.value", done.Next)
	})
	return done, err
}

// pruneStep is a part of pruning a queue; the parts follow in this order. Inboxes and documents
// come before the first queue, as the queue with the number 0.
type pruneStep int64

const (
	pruneMessages pruneStep = iota
	pruneLetters
	pruneAudit
	pruneSteps // number of steps

	pruneDocuments = pruneLetters // of the queue with the number 0
)

// pruneCursor says where a call goes on: behind the position or number after, in one step of one
// queue.
type pruneCursor struct {
	queue int64
	step  pruneStep
	after int64
}

func (p pruneCursor) String() string { return fmt.Sprintf("%d.%d.%d", p.queue, p.step, p.after) }

func parsePruneCursor(cursor string) (p pruneCursor, err error) {
	if cursor == "" {
		return p, nil
	}
	parts := strings.Split(cursor, ".")
	var n [3]int64
	for i := range n {
		if len(parts) != len(n) || err != nil {
			break
		}
		n[i], err = strconv.ParseInt(parts[i], 10, 64)
	}
	if p = (pruneCursor{n[0], pruneStep(n[1]), n[2]}); err != nil || p.String() != cursor || p.step >= pruneSteps {
		return p, nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not from an earlier step of pruning: start without one", cursor)
	}
	return p, nil
}

// keptCursor returns where the last call that was to be resumed ended.
func (t *tx) keptCursor() (pruneCursor, error) {
	cursor := ""
	if err := t.each("select value from meta where name = 'prune'", func(row rows) error {
		cursor = row.ColumnText(0)
		return nil
	}); err != nil {
		return pruneCursor{}, err
	}
	return parsePruneCursor(cursor)
}

// pruner is one call of Prune.
type pruner struct {
	queries
	t     *tx // nil in a dry run
	now   int64
	left  int // rows to scan
	at    pruneCursor
	noted int // audit entries of the queue that this call has added
	done  store.Pruned
}

// run prunes the steps of all queues until it has scanned enough rows.
func (p *pruner) run() (store.Pruned, error) {
	for p.left > 0 {
		if p.at.queue == 0 {
			if err := p.ofNoQueue(); err != nil {
				return p.done, err
			}
			continue
		}
		var settings nixie.QueueSettings
		found := false
		if err := p.each("select n, settings from queue where n >= ? order by n limit 1", func(row rows) error {
			found = true
			if n := row.ColumnInt64(0); n != p.at.queue {
				p.at = pruneCursor{queue: n}
			}
			return fromJSON(row.ColumnText(1), &settings)
		}, p.at.queue); err != nil || !found {
			return p.done, err
		}
		over, err := p.scan(settings)
		if err != nil {
			return p.done, err
		}
		if !over {
			continue
		}
		p.at.step, p.at.after = p.at.step+1, 0
		if p.at.step == pruneSteps {
			p.at = pruneCursor{queue: p.at.queue + 1}
		}
	}
	p.done.Next = p.at.String()
	return p.done, nil
}

// ofNoQueue prunes what belongs to no queue: the inboxes, then documents.
func (p *pruner) ofNoQueue() error {
	prune, next := p.inbox, pruneCursor{step: pruneDocuments}
	if p.at.step == pruneDocuments {
		prune, next = p.documents, pruneCursor{queue: 1}
	}
	over, err := prune()
	if over {
		p.at = next
	}
	return err
}

// scan prunes rows of the current step and reports whether the step is over.
func (p *pruner) scan(settings nixie.QueueSettings) (over bool, err error) {
	messages, letters, audit := settings.Kept()
	switch p.at.step {
	case pruneMessages:
		p.noted = 0
		return p.messages(messages)
	case pruneLetters:
		return p.letters(letters)
	}
	return p.audit(audit)
}

// cutoff returns the moment before which ended rows have outlived a retention.
func (p *pruner) cutoff(kept time.Duration) int64 { return p.now - int64(kept) }

func (p *pruner) messages(kept time.Duration) (over bool, err error) {
	if kept == nixie.Forever {
		return true, nil
	}
	first, last := p.at.queue<<seqBits, p.at.queue<<seqBits|maxSeq
	var gone []int64
	scanned := 0
	if err := p.each(sqlText("prunable_messages"), func(row rows) error {
		scanned++
		p.at.after = row.ColumnInt64(0)
		if row.ColumnBool(1) {
			gone = append(gone, p.at.after)
		}
		return nil
	}, p.cutoff(kept), lifecycle.Dead, max(first, p.at.after), last, p.left); err != nil {
		return false, err
	}
	over = scanned < p.left
	p.left -= scanned
	p.done.Messages += int64(len(gone))
	if p.t == nil {
		return over, nil
	}
	for _, pos := range gone {
		if err := p.t.removeMessage(pos, ofPruned); err != nil {
			return false, err
		}
	}
	return over, nil
}

func (p *pruner) letters(kept time.Duration) (over bool, err error) {
	if kept == nixie.Forever {
		return true, nil
	}
	var gone []int64
	if err := p.each(sqlText("prunable_letters"), func(row rows) error {
		p.at.after = row.ColumnInt64(0)
		gone = append(gone, p.at.after)
		return nil
	}, p.at.after, p.at.queue, p.cutoff(kept), p.left); err != nil {
		return false, err
	}
	over = len(gone) < p.left
	p.left -= len(gone)
	p.done.Letters += int64(len(gone))
	if p.t == nil {
		return over, nil
	}
	p.noted = len(gone)
	for _, pos := range gone {
		l, err := p.t.letter(sqlText("letter_at"), pos)
		if err != nil {
			return false, err
		}
		if err := p.t.removeLetter(l, nixie.ID{}, ofPruned); err != nil {
			return false, err
		}
		if err := p.t.audit(l.queue, lifecycle.System, store.OnPurge, l.ID, store.PrunedLetter(kept)); err != nil {
			return false, err
		}
	}
	return over, nil
}

// audit prunes from the oldest entry on. The newest entry from before this call always stays, so
// that a dry run returns what a real run does.
func (p *pruner) audit(kept time.Duration) (over bool, err error) {
	if kept == nixie.Forever {
		return true, nil
	}
	type entry struct {
		number, at int64
		hash       nixie.Hash
	}
	var list []entry
	if err := p.each("select number, at, hash from audit where queue = ? and number > ? order by number limit ?", func(row rows) error {
		e := entry{number: row.ColumnInt64(0), at: row.ColumnInt64(1)}
		row.ColumnBytes(2, e.hash[:])
		list = append(list, e)
		return nil
	}, p.at.queue, p.at.after, p.left+1+p.noted); err != nil {
		return false, err
	}
	n := 0
	for n+1+p.noted < len(list) && list[n].at <= p.cutoff(kept) {
		n++
	}
	over = n < p.left
	p.left -= n
	p.done.Entries += int64(n)
	if n == 0 {
		return over, nil
	}
	newest := list[n-1]
	p.at.after = newest.number
	if p.t == nil {
		return over, nil
	}
	if err := p.t.run(sqlText("keep_anchor"),
		p.at.queue, newest.number, newest.hash); err != nil {
		return false, err
	}
	if err := p.t.run("delete from audit where queue = ? and number <= ?", p.at.queue, newest.number); err != nil {
		return false, err
	}
	return over, p.t.audit(p.at.queue, lifecycle.System, store.OnPrune, nixie.ID{}, store.PrunedEntries(newest.number, kept))
}
