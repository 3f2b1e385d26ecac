package lifecycle

import "github.com/nixie-go/nixie"

// Next is the status of a letter after an event that [Refuse] found possible, or that took
// place elsewhere. That the table of moves forbids it is damage.
func Next(letter nixie.ID, status nixie.Status, on nixie.Event) (nixie.Status, error) {
	next, ok := nixie.NextStatus(status, on)
	if !ok {
		return "", nixie.Errorf(nixie.CodeInternal, "letter %s is %s and cannot follow %s: run nixie verify", letter, status, on)
	}
	return next, nil
}

// Follow is the status of a letter after the end of its message, which was on its way here:
// the letter is new, and has no status, or it was redriven.
func Follow(letter nixie.ID, status nixie.Status, on nixie.Event) (nixie.Status, error) {
	if status != "" && status != nixie.StatusRedriving {
		return "", nixie.Errorf(nixie.CodeInternal, "letter %s is %s while its message was on its way: run nixie verify", letter, status)
	}
	return Next(letter, status, on)
}
