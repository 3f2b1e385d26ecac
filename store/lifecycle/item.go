package lifecycle

import "github.com/nixie-go/nixie"

// Item is the state of a letter in an operation.
type Item string

// The states of an item.
const (
	ItemPending Item = "pending"
	ItemDone    Item = "done"
	ItemSkipped Item = "skipped" // the resolution was refused
	ItemFailed  Item = "failed"  // the letter could not be read
)

// ItemOf returns the state of an item after the answer to its resolution.
func ItemOf(answer error) Item {
	switch {
	case answer == nil:
		return ItemDone
	case nixie.CodeOf(answer) == nixie.CodeInternal:
		return ItemFailed
	}
	return ItemSkipped
}

// Open returns nil for a pending item, and for another item the reason why a resolution cannot
// change it. The operation did not select the letter (""), or the item is decided: it stays so,
// also when the operation is resumed.
func (i Item) Open(letter, operation nixie.ID) error {
	switch i {
	case ItemPending:
		return nil
	case "":
		return nixie.Errorf(nixie.CodeNotFound, "letter %s is not in operation %s", letter, operation)
	}
	return nixie.Errorf(nixie.CodeConflict, "letter %s is %s already in operation %s", letter, i, operation)
}
