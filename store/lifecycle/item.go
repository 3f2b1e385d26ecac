package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Item is the state of a letter in an operation.
type Item string

// The states of an item. An item that a redrive moved is never done: it has an outcome, which is
// under way or unobserved until its message ends.
const (
	ItemPending    Item = "pending"
	ItemSkipped    Item = "skipped" // the resolution was refused
	ItemFailed     Item = "failed"  // the letter could not be read
	ItemDone       Item = "done"
	ItemUnderWay   Item = "under way"
	ItemUnobserved Item = "unobserved" // a broker took the message
	ItemSucceeded  Item = "succeeded"
	ItemSame       Item = "same failure" // as in the plan
	ItemNew        Item = "new failure"
	ItemGone       Item = "gone" // canceled or discarded before it ended
)

// ItemOf returns the state of an item after the answer to its resolution.
func ItemOf(r *store.Resolution, answer error) Item {
	switch {
	case nixie.CodeOf(answer) == nixie.CodeInternal:
		return ItemFailed
	case answer != nil:
		return ItemSkipped
	case r.Event == store.OnRedrive:
		return ItemUnderWay
	case r.Event == store.OnConfirm:
		return ItemUnobserved
	}
	return ItemDone
}

// Open returns nil for a pending item, and for another item the reason why a resolution cannot
// change it. The operation, planned for an event, did not select the letter (""), or the item is
// decided: it stays so, also when the operation is resumed.
func (i Item) Open(r *store.Resolution, planned store.Event) error {
	switch {
	case i == "":
		return nixie.Errorf(nixie.CodeNotFound, "letter %s is not in operation %s", r.Letter, r.Operation)
	case r.Event != planned && (r.Event != store.OnConfirm || planned != store.OnRedrive):
		return nixie.Errorf(nixie.CodeInvalid, "%s of letter %s is no part of operation %s: it is a %s", r.Event, r.Letter, r.Operation,
			planned)
	case i != ItemPending:
		return nixie.Errorf(nixie.CodeConflict, "letter %s is decided already in operation %s: %s", r.Letter, r.Operation, i)
	}
	return nil
}

// Ending tells how the message of a letter ended that a redrive moved.
type Ending struct {
	Operation   nixie.ID    // the redrive
	On          store.Event // of the letter
	Fingerprint string      // of the latest death

	// Elsewhere is true for a death with a foreign broker: it ends what that took, and not what is
	// on its way here. Sent is true if the letter of that death names the redrive: then also an
	// item ends that still waits for its confirmation. With Early it waits on, for its own letter
	// has to be confirmed yet, and has this outcome then.
	Elsewhere, Sent, Early bool
}

// Outcome returns the outcome that an ending gives an item: the first if the fingerprint is that of
// the plan, else the second.
func (e Ending) Outcome() (same, other Item) {
	switch e.On {
	case store.OnSuccess:
		return ItemSucceeded, ItemSucceeded
	case store.OnGone:
		return ItemGone, ItemGone
	case store.OnConfirm:
		return ItemUnobserved, ItemUnobserved
	}
	return ItemSame, ItemNew
}

// From returns the state of the items that the ending gives an outcome. Other items keep theirs.
func (e Ending) From() Item {
	if e.Elsewhere {
		return ItemUnobserved
	}
	return ItemUnderWay
}

// Elsewhere returns the endings of the redrives of a letter that died with a foreign broker: of the
// one that moved the letter last, and of the one that the letter of that death names.
func Elsewhere(moved nixie.ID, given *nixie.Letter, early bool) []Ending {
	return []Ending{
		{Operation: moved, On: store.OnDieAgain, Fingerprint: given.Fingerprint, Elsewhere: true},
		{Operation: given.Operation, On: store.OnDieAgain, Fingerprint: given.Fingerprint, Elsewhere: true, Sent: true, Early: early},
	}
}

// Overtaken returns the event that ends the item of an earlier redrive when a letter that is on its
// way is confirmed: a confirmation without an operation goes on with that redrive.
func Overtaken(r *store.Resolution) store.Event {
	if r.Operation.IsZero() {
		return store.OnConfirm
	}
	return store.OnGone
}

// Items are the items of an operation, as a store reads them.
type Items struct {
	By map[Item]int64 `json:"by"` // how many have a state
	At int64          `json:"at"` // when the last of them got it, in nanoseconds since 1970; 0: all are as planned
}

// Count adds the items to the counts of their operation.
func (i Items) Count(op *store.Operation) {
	for state, n := range i.By {
		state.Count(op, n)
	}
	op.ChangedAt = Moment(i.At)
}

// Count adds n items of one state to the counts of their operation.
func (i Item) Count(op *store.Operation, n int64) {
	o := &op.Outcome
	of, outcome := map[Item]*int64{
		ItemUnderWay: &o.UnderWay, ItemUnobserved: &o.Unobserved, ItemSucceeded: &o.Succeeded, ItemSame: &o.SameFailure,
		ItemNew: &o.NewFailure, ItemGone: &o.Gone,
	}[i]
	op.Selected += n
	switch {
	case outcome:
		*of += n
		op.Done += n
	case i == ItemDone:
		op.Done += n
	case i == ItemSkipped:
		op.Skipped += n
	case i == ItemFailed:
		op.Failed += n
	case i == ItemPending:
		op.Pending += n
	}
}
