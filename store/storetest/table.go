package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func tableClauses() []clause {
	return []clause{
		{"EveryStateAndEvent", everyStateAndEvent},
		{"EveryStatusAndEvent", everyStatusAndEvent},
	}
}

// everyStateAndEvent tries all pairs of a message's state and an event. A pair of the table changes
// the state; any other is refused and changes nothing. A verb needs a delivery. For states without
// a lease it uses the last lease of the message, and skips the pair if there was none.
func everyStateAndEvent(b *fixture) {
	for _, from := range nixie.States() {
		for _, on := range messageEvents() {
			d := b.messageIn(from)
			act := b.messageAct(on, d)
			if act == nil {
				b.Logf("cannot be expressed: %s on a message that is %s", on, from)
				b.emptyOffice()
				continue
			}
			want, allowed := store.NextState(from, on)
			what := fmt.Sprintf("%s on a message that is %s", on, from)
			b.pair(what, allowed, act)
			if allowed {
				same(b, "state after "+what, b.record(d.ID).State, want)
			} else {
				same(b, "state after a refused "+what, b.record(d.ID).State, from)
			}
			b.emptyOffice()
		}
	}
}

func messageEvents() []store.Event {
	return []store.Event{
		store.OnEnqueue, store.OnClaim, store.OnCancel, store.OnComplete, store.OnRetry, store.OnRelease,
		store.OnAbandon, store.OnDiscard, store.OnBury, store.OnHold, store.OnRedrive,
	}
}

// pair applies one event that the table allows or forbids. The act returns an error or, if the
// contract refuses by doing nothing, errNothing.
func (b *fixture) pair(what string, allowed bool, act func() error) {
	b.Helper()
	if allowed {
		if err := act(); err != nil {
			b.Fatalf("%s: error is %v, and the table allows it", what, err)
		}
		return
	}
	b.unchanged(func() {
		if err := act(); err == nil {
			b.Fatalf("%s: no error, and the table does not allow it", what)
		}
	})
}

var errNothing = fmt.Errorf("nothing happened")

// messageIn makes a message with a state, and returns its last delivery.
func (b *fixture) messageIn(state nixie.State) *nixie.Delivery {
	b.Helper()
	d := b.took("a")
	switch state {
	case nixie.Queued:
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
	case nixie.Succeeded:
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	case nixie.Discarded:
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Discard}))
	case nixie.Canceled:
		b.ok(b.amend(d.ID, store.Cancel))
	case nixie.Dead:
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	}
	b.state(d.ID, state)
	return d
}

// messageAct returns the calls that cause an event, nil if the contract has none.
func (b *fixture) messageAct(on store.Event, d *nixie.Delivery) func() error {
	settle := func(v nixie.Verb) func() error {
		return func() error { return b.settle(nixie.Settlement{Delivery: d, Verb: v, Burial: burial("")}) }
	}
	switch on {
	case store.OnEnqueue:
		return func() error {
			m := message("a")
			m.ID = d.ID
			_, err := b.st.Enqueue(b.ctx, m)
			return err
		}
	case store.OnClaim:
		return func() error {
			if ds := b.claim(9); len(ds) == 0 {
				return errNothing
			}
			return nil
		}
	case store.OnCancel:
		return func() error { return b.amend(d.ID, store.Cancel) }
	case store.OnHold:
		return func() error { return b.change(d.ID, b.holding("poison")) }
	case store.OnComplete:
		return settle(nixie.Complete)
	case store.OnRetry:
		return settle(nixie.Retry)
	case store.OnRelease:
		return settle(nixie.Release)
	case store.OnDiscard:
		return settle(nixie.Discard)
	case store.OnBury:
		return settle(nixie.Bury)
	case store.OnAbandon:
		return b.abandonAct(d)
	case store.OnRedrive:
		if ls := b.letters(nixie.Filter{IDs: []nixie.ID{d.ID}}); len(ls) == 1 {
			return func() error { return b.resolve(ls[0].ID, store.OnRedrive) }
		}
	}
	return nil
}

// abandonAct lets time pass on a paused queue until a lease would have ended.
func (b *fixture) abandonAct(d *nixie.Delivery) func() error {
	b.configure(nixie.QueueSettings{Paused: true})
	return func() error {
		before := b.record(d.ID).Crashes
		b.clock.Advance(time.Minute)
		b.claim(1)
		if b.record(d.ID).Crashes == before {
			return errNothing
		}
		return nil
	}
}

// emptyOffice ends all messages and letters before the next pair.
func (b *fixture) emptyOffice() {
	b.Helper()
	b.empty()
	b.configure(nixie.QueueSettings{})
	for _, l := range b.letters(nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}}) {
		b.ok(b.resolve(l.ID, store.OnDiscard))
	}
}

func letterEvents() []store.Event {
	return []store.Event{
		store.OnBury, store.OnHold, store.OnUnhold, store.OnRedrive, store.OnSuccess, store.OnConfirm, store.OnGone,
		store.OnDieAgain, store.OnExceed, store.OnRequalify, store.OnDiscard, store.OnRestore,
	}
}

// everyStatusAndEvent tries all pairs of a letter's status and an event. Events that come from the
// message of a letter are caused by settling the message. Only a letter that is redriving has such
// a message, so these pairs are skipped for other statuses. A new letter comes from a bury or hold
// of its message, which is a pair of messages.
func everyStatusAndEvent(b *fixture) {
	var not []string
	for _, from := range nixie.Statuses() {
		for _, on := range letterEvents() {
			what := fmt.Sprintf("%s on a letter that is %s", on, from)
			l, d := b.letterIn(from)
			act := b.letterAct(on, l, d)
			if act == nil {
				not = append(not, what)
				b.emptyOffice()
				continue
			}
			want, allowed := store.NextStatus(from, on)
			b.pair(what, allowed, act)
			if !allowed {
				want = from
			}
			same(b, "status after "+what, b.letter(l.ID).Status, want)
			b.emptyOffice()
		}
	}
	b.Logf("cannot be expressed:\n  %s", strings.Join(not, "\n  "))
}

// letterIn makes a letter with a status. For redriving, its message is leased and returned too.
func (b *fixture) letterIn(status nixie.Status) (nixie.Letter, *nixie.Delivery) {
	b.Helper()
	if status == nixie.StatusQuarantined {
		return b.quarantined("a"), nil
	}
	first := nixie.StatusOpen
	if status == nixie.StatusReview {
		first = status
	}
	l := b.dead("a", first)
	var d *nixie.Delivery
	switch status {
	case nixie.StatusRedriving:
		b.ok(b.resolve(l.ID, store.OnRedrive))
		d = b.take("a")
	case nixie.StatusResolved:
		b.ok(b.resolve(l.ID, store.OnRedrive))
		b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	case nixie.StatusDiscarded:
		b.ok(b.resolve(l.ID, store.OnDiscard))
	}
	b.status(l.ID, status)
	return l, d
}

func (b *fixture) letterAct(on store.Event, l nixie.Letter, d *nixie.Delivery) func() error {
	operator := func() error { return b.resolve(l.ID, on) }
	switch on {
	case store.OnUnhold, store.OnRedrive, store.OnRequalify, store.OnDiscard, store.OnRestore, store.OnConfirm:
		return operator
	case store.OnHold:
		if d == nil {
			return operator
		}
	case store.OnBury:
		return nil // the event is for letters that do not exist
	}
	if d == nil {
		return nil
	}
	settlements := map[store.Event]nixie.Settlement{
		store.OnSuccess:  {Delivery: d, Verb: nixie.Complete},
		store.OnGone:     {Delivery: d, Verb: nixie.Discard},
		store.OnDieAgain: b.dying(d, nixie.StatusOpen),
		store.OnExceed:   b.dying(d, nixie.StatusQuarantined),
		store.OnHold:     {Delivery: d, Verb: nixie.Hold, Burial: burial(nixie.StatusReview)},
	}
	return func() error { return b.settle(settlements[on]) }
}
