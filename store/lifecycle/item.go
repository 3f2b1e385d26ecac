package lifecycle

import "github.com/nixie-go/nixie"

// Item is what became of a letter in an operation.
type Item string

// The items of an operation. Failed is one whose letter could not be read; one that could
// be read and was refused is skipped.
const (
	ItemPending Item = "pending"
	ItemDone    Item = "done"
	ItemSkipped Item = "skipped"
	ItemFailed  Item = "failed"
)

// ItemOf is the item whose resolution was answered so.
func ItemOf(answer error) Item {
	switch {
	case answer == nil:
		return ItemDone
	case nixie.CodeOf(answer) == nixie.CodeInternal:
		return ItemFailed
	}
	return ItemSkipped
}

// Open says why a resolution cannot decide an item, nil if it can: the operation did not
// choose the letter, which is "", or it was decided before. What was decided once stays so,
// however often an operation is resumed.
func (i Item) Open(letter, operation nixie.ID) error {
	switch i {
	case ItemPending:
		return nil
	case "":
		return nixie.Errorf(nixie.CodeNotFound, "letter %s is not in operation %s", letter, operation)
	}
	return nixie.Errorf(nixie.CodeConflict, "letter %s is %s already in operation %s", letter, i, operation)
}
