package engine

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Enqueue implements nixie.Enqueuer.
func (e *Engine) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	size, err := store.CheckMessages(messages)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	if receipts, err := e.driver.EnqueuePlain(ctx, messages); receipts != nil || err != nil {
		return receipts, err
	}
	return Within(e.driver.Update).enqueue(ctx, messages, size)
}

// Enqueue implements nixie.Enqueuer. The receipts hold once the transaction has committed.
func (w Within) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	size, err := store.CheckMessages(messages)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	return w.enqueue(ctx, messages, size)
}

func (w Within) enqueue(ctx context.Context, messages []nixie.Message, size int) (receipts []nixie.Receipt, err error) {
	hashes := hashesOf(messages) // others do not wait for that
	err = w(ctx, How{Bytes: max(size, 1)}, func(tx Tx) (err error) {
		receipts, err = enqueue(tx, messages, hashes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

func hashesOf(messages []nixie.Message) []nixie.Hash {
	hashes := make([]nixie.Hash, len(messages))
	for i := range messages {
		hashes[i] = nixie.HashBody(messages[i].Body)
	}
	return hashes
}

// enqueue takes messages in, all or none.
func enqueue(tx Tx, messages []nixie.Message, hashes []nixie.Hash) ([]nixie.Receipt, error) {
	facts, err := tx.Load(&Want{New: messages})
	if err != nil {
		return nil, err
	}
	e := enqueuing{call{Facts: facts}, tx}
	e.changes.New = make([]*Arrival, 0, len(messages))
	receipts := make([]nixie.Receipt, len(messages))
	for i := range messages {
		m := &facts.New[i]
		m.Given, m.Hash = &messages[i], hashes[i]
		if receipts[i], err = e.accept(m); err != nil {
			return nil, err
		}
	}
	return receipts, tx.Write(&e.changes)
}

// enqueuing is one call of Enqueue.
type enqueuing struct {
	call
	tx Tx
}

// accept takes one message in, or answers with the one that holds its dedupe key.
func (e *enqueuing) accept(m *Arrival) (nixie.Receipt, error) {
	given, q := m.Given, m.Queue
	if err := lifecycle.Admits(q.Settings, q.Name); err != nil {
		return nixie.Receipt{}, err
	}
	own := Key{q.Number, given.DedupeKey}
	if own.Key != "" {
		if by, held := e.Keys[own]; held && by.Pos != m.Pos {
			return e.meet(m, own, by)
		}
	}
	if err := q.room(); err != nil {
		return nixie.Receipt{}, err
	}
	if m.ID = given.ID; e.IDs[m.ID] {
		return nixie.Receipt{}, nixie.Errorf(nixie.CodeConflict, "message %s exists already: leave the ID out or use a new one", m.ID)
	}
	q.Taken++
	if m.Pos == 0 {
		m.Pos = e.tx.Append(q)
	}
	if m.ID.IsZero() {
		m.ID = e.tx.NewID(m.Pos)
	} else {
		e.IDs[m.ID] = true
	}
	m.Due, m.Ordered = e.due(given), given.Stream != "" && q.Settings.Ordered()
	if own.Key != "" {
		e.Keys[own] = Holder{Pos: m.Pos, ID: m.ID, Hash: m.Hash, of: m}
	}
	e.changes.New = append(e.changes.New, m)
	return nixie.Receipt{ID: m.ID}, nil
}

// due returns the moment before which a new message is not delivered.
func (e *enqueuing) due(given *nixie.Message) int64 {
	due := e.Now + int64(max(given.Delay, 0))
	if given.NotBefore.IsZero() {
		return due
	}
	return max(due, e.Due(lifecycle.Nanos(given.NotBefore)))
}

// meet answers a message whose dedupe key another one holds.
func (e *enqueuing) meet(m *Arrival, own Key, by Holder) (nixie.Receipt, error) {
	switch m.Given.OnConflict {
	case nixie.ReturnExisting:
	case nixie.ReplaceExisting:
		if by.State != lifecycle.Queued && by.State != lifecycle.Behind || by.Deliveries > 0 {
			return nixie.Receipt{}, &nixie.DuplicateError{Key: own.Key, Existing: by.ID}
		}
		e.replace(own, by, m)
	default:
		return nixie.Receipt{}, &nixie.DuplicateError{Key: own.Key, Existing: by.ID}
	}
	return nixie.Receipt{ID: by.ID, Duplicate: true, Different: by.Hash != m.Hash}, nil
}

// replace gives a message that has not been claimed in its generation what a newer one says: body,
// headers, type and, if it has one, the key.
func (e *enqueuing) replace(at Key, by Holder, m *Arrival) {
	e.record(m.Queue.Number, store.AuditEntry{
		Actor: lifecycle.System, Event: store.OnAmend, Subject: by.ID, Reason: store.Replaced(by.Hash),
	})
	if of := by.of; of != nil { // it is of this call
		own, next := *of.Given, m.Given
		own.Body, own.Headers, own.Type, own.Key = next.Body, next.Headers, next.Type, cmp.Or(next.Key, own.Key)
		of.Given, of.Hash = &own, m.Hash
	} else {
		e.changes.Replaced = append(e.changes.Replaced, Replacement{by.Pos, m})
	}
	by.Hash = m.Hash
	e.Keys[at] = by
}
