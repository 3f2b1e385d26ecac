package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Settle implements store.Queue.
func (e *Engine) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	if len(settlements) == 0 {
		return []error{}
	}
	errs, _ := e.settleThen(ctx, settlements, "", nil)
	return errs
}

// Exchange settles, and then claims from a queue by a function of the driver, in one transaction.
func (e *Engine) Exchange(ctx context.Context, settlements []nixie.Settlement, queue string, claim func(Tx) error) ([]error, error) {
	errs, err := e.settleThen(ctx, settlements, queue, claim)
	if err != nil {
		errs = e.Unexchanged(ctx, settlements, err)
	}
	return errs, err
}

// Unexchanged settles without a claim after an exchange has failed, as the claim may be to blame.
// It does not if the exchange may have been made, or if the store is away.
func (e *Engine) Unexchanged(ctx context.Context, settlements []nixie.Settlement, err error) []error {
	switch nixie.CodeOf(err) {
	case nixie.CodeOutcomeUnknown, nixie.CodeUnavailable:
		return all(make([]error, len(settlements)), err)
	}
	return e.Settle(ctx, settlements)
}

// settleThen settles, and then claims if there is a claim. The error is that of the transaction.
func (e *Engine) settleThen(ctx context.Context, settlements []nixie.Settlement, queue string, claim func(Tx) error) ([]error, error) {
	errs := make([]error, len(settlements))
	size, err := store.CheckSettlements(settlements)
	var done []bool
	if err == nil && claim == nil {
		done, err = e.driver.CompletePlain(ctx, settlements)
	}
	if err != nil {
		return all(errs, err), err
	}
	var at []int
	for i := range settlements {
		if done != nil && done[i] {
			continue
		}
		st := &settlements[i]
		if errs[i] = store.CheckSettlement(st); errs[i] != nil {
			continue
		}
		if f := st.Failure; f != nil {
			size += len(f.Text) + len(f.Stack)
		}
		at = append(at, i)
	}
	if len(at) == 0 && claim == nil {
		return errs, nil
	}
	rest := settlements
	if len(at) < len(rest) {
		rest = make([]nixie.Settlement, len(at))
		for i, at := range at {
			rest[i] = settlements[at]
		}
	}
	left := make([]error, len(rest))
	err = e.driver.Update(ctx, How{Ends: true, Bytes: size, Claims: queue}, func(tx Tx) error {
		if err := Settle(tx, rest, left); err != nil || claim == nil {
			return err
		}
		return claim(tx)
	})
	if err != nil {
		all(left, err)
	}
	for i, at := range at {
		errs[at] = left[i]
	}
	return errs, err
}

// Settle applies settlements that [store.CheckSettlement] allows, and sets why one was refused. It
// is a part of a transaction, for drivers that run it in one of a caller.
func Settle(tx Tx, settlements []nixie.Settlement, errs []error) error {
	clear(errs)
	done, err := tx.Complete(settlements)
	if err != nil {
		return err
	}
	rest, want := make([]int, 0, len(settlements)), &Want{Settles: true}
	for i := range settlements {
		if done == nil || !done[i] {
			rest = append(rest, i)
			want.settle(&settlements[i])
		}
	}
	if len(rest) == 0 {
		return nil
	}
	facts, err := tx.Load(want)
	if err != nil {
		return err
	}
	s := settling{ending{call: call{Facts: facts}, tx: tx}}
	s.changes.Messages = make([]*Message, 0, len(rest))
	if want.Failures { // they are large, and most of the messages have one
		s.changes.Failures = make([]Failure, 0, len(rest))
	}
	for i, at := range rest {
		errs[at] = s.settle(facts.Leases[i], &settlements[at])
	}
	return s.write()
}

// settle asks for the facts about a settlement.
func (w *Want) settle(st *nixie.Settlement) {
	w.Leases, w.Dies = append(w.Leases, st.Delivery), append(w.Dies, st.Burial != nil)
	w.Failures = w.Failures || st.Failure != nil || st.Second != nil || st.Burial != nil
	if st.Verb == nixie.Halt {
		w.Halted = append(w.Halted, st.Delivery.ID)
	}
	w.Then = append(w.Then, st.Then...)
}

// settling is one call of Settle.
type settling struct{ ending }

// settle applies one settlement. It answers before it changes anything.
func (s *settling) settle(m *Message, st *nixie.Settlement) error {
	for i := range st.Then {
		if q := s.Queues[st.Then[i].Queue]; q != nil {
			if err := lifecycle.Admits(q.Settings, q.Name); err != nil {
				return err
			}
		}
	}
	steps, err := s.held(m, st.Delivery)
	if err != nil {
		return err
	}
	if err := s.apply(m, st, steps); err != nil {
		return err
	}
	if len(st.Then) > 0 {
		s.follows = append(s.follows, follow{then: st.Then})
	}
	return nil
}

// Sweep ends leases that are over, and those of owners that are gone. Messages that succeeded by
// the progress that their holders logged are completed, and those that waited are released. The
// others wait to be judged: a crash is an ordinary failure. It is a part of a claim, for drivers.
func Sweep(tx Tx, gone []int64) error {
	facts, err := tx.Load(&Want{Over: true, Gone: gone})
	if err != nil {
		return err
	}
	e := ending{call: call{Facts: facts}, tx: tx}
	for i := range facts.Over {
		if err := e.vanish(&facts.Over[i]); err != nil {
			return err
		}
	}
	return e.write()
}

// vanish ends a lease without the answer of its holder. A message whose letter cannot be read waits
// to be judged: its end would be refused, and with it the claim of all others.
func (e *ending) vanish(v *Vanished) error {
	m, progress := v.Message, v.Progress
	if m.Letter != nil && m.Letter.Damage != nil {
		progress = lease.Begun
	}
	switch progress {
	case lease.Succeeded:
		return e.apply(m, &nixie.Settlement{Verb: nixie.Complete}, m.Steps)
	case lease.Waiting:
		return e.apply(m, &nixie.Settlement{Verb: nixie.Release}, m.Steps)
	}
	if err := m.Abandon(v.By, v.Told, e.Now); err != nil {
		return err
	}
	e.again(m)
	return nil
}
