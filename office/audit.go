package office

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// AuditView shows an entry of the audit. Audit list prints it.
type AuditView struct {
	Queue     string      `json:"queue"`
	Number    int64       `json:"number"` // 1, 2, 3 … per queue
	At        Timestamp   `json:"at"`
	Actor     string      `json:"actor"`
	Event     store.Event `json:"event"`
	Subject   string      `json:"subject"` // a letter or message, "" for the queue
	Reason    string      `json:"reason"`
	Operation string      `json:"operation"` // that it is part of, "" if of none
	Hash      string      `json:"hash"`
}

// AuditLink is an entry with the hash of the entry before it, so that each can be checked by
// itself. Audit export prints it.
type AuditLink struct {
	AuditView
	Before string `json:"before"` // hash of the entry before it; zeros for the first
}

// ViewAudit makes the view of an entry.
func ViewAudit(e *store.AuditEntry) AuditView {
	v := AuditView{
		Queue: e.Queue, Number: e.Number, At: Timestamp{e.At}, Actor: e.Actor, Event: e.Event, Reason: e.Reason, Hash: hexHash(e.Hash),
	}
	if !e.Subject.IsZero() {
		v.Subject = e.Subject.String()
	}
	if !e.Operation.IsZero() {
		v.Operation = e.Operation.String()
	}
	return v
}

// Audit lists the entries that match, of all queues, and returns the cursor of the next page.
func (o *Office) Audit(ctx context.Context, f store.AuditFilter, p store.Page) ([]store.AuditEntry, string, error) {
	return o.store.Audit(ctx, f, p)
}

// AllAudit yields all entries that match.
func (o *Office) AllAudit(ctx context.Context, f store.AuditFilter) iter.Seq2[store.AuditEntry, error] {
	return all(false, func(p store.Page) ([]store.AuditEntry, string, error) { return o.store.Audit(ctx, f, p) })
}

// chain yields the entries of a queue in the order of its chain.
func (o *Office) chain(ctx context.Context, queue string) iter.Seq2[store.AuditEntry, error] {
	return all(false, func(p store.Page) ([]store.AuditEntry, string, error) {
		return o.store.Audit(ctx, store.AuditFilter{Chain: queue}, p)
	})
}

// ExportAudit reads the whole chains of the named queues, or of all, and yields the entries that
// match.
func (o *Office) ExportAudit(ctx context.Context, f store.AuditFilter) iter.Seq2[AuditLink, error] {
	return func(yield func(AuditLink, error) bool) {
		names, err := o.named(ctx, f.Queues)
		if err != nil {
			yield(AuditLink{}, err)
			return
		}
		for _, name := range names {
			for e, err := range o.chain(ctx, name) {
				if err != nil {
					yield(AuditLink{}, err)
					return
				}
				if f.Match(&e) && !yield(AuditLink{ViewAudit(&e), hex.EncodeToString(e.Before[:])}, nil) {
					return
				}
			}
		}
	}
}

// named returns the names of these queues, or of all; each named one must exist.
func (o *Office) named(ctx context.Context, names []string) ([]string, error) {
	queues, err := o.queues(ctx, names)
	list := make([]string, 0, len(queues))
	for _, q := range queues {
		list = append(list, q.Name)
	}
	return list, err
}

// ChainView shows the check of a queue's chain. Audit verify prints it. An attacker who can write
// the whole store can write a new chain; an operator who noted the head elsewhere sees that.
type ChainView struct {
	Queue   string `json:"queue"`
	Entries int64  `json:"entries"` // that were read
	Pruned  int64  `json:"pruned"`  // earlier entries that retention removed
	Whole   bool   `json:"whole"`
	Head    string `json:"head"`      // hash of the last entry, "" when there is none
	BreakAt int64  `json:"break_at"`  // number of the first entry that does not fit, 0 when whole
	Why     string `json:"break_why"` // "" when whole
}

// VerifyAudit recomputes the chains of the named queues, or of all.
func (o *Office) VerifyAudit(ctx context.Context, queues []string) ([]ChainView, error) {
	names, err := o.named(ctx, queues)
	if err != nil {
		return nil, err
	}
	views := []ChainView{}
	for _, name := range names {
		v, err := o.verifyChain(ctx, name)
		if err != nil {
			return views, err
		}
		views = append(views, v)
	}
	return views, nil
}

func (o *Office) verifyChain(ctx context.Context, queue string) (ChainView, error) {
	v := ChainView{Queue: queue, Whole: true}
	var before nixie.Hash
	for e, err := range o.chain(ctx, queue) {
		if err != nil {
			return v, err
		}
		if v.Entries == 0 && e.Before != (nixie.Hash{}) { // the store keeps the hash of the last pruned entry
			v.Pruned, before = e.Number-1, e.Before
		}
		v.Entries++
		if want := v.Pruned + v.Entries; v.Whole && e.Number != want {
			v.broken(want, fmt.Sprintf("entry %d is missing, number %d follows", want, e.Number))
		}
		if v.Whole && e.Sum(before) != e.Hash {
			v.broken(e.Number, fmt.Sprintf("entry %d was changed, or the one before it", e.Number))
		}
		before, v.Head = e.Hash, hexHash(e.Hash)
	}
	return v, nil
}

func (v *ChainView) broken(at int64, why string) { v.Whole, v.BreakAt, v.Why = false, at, why }
