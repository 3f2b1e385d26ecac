package store

import "github.com/nixie-go/nixie"

// Edit is what an operator makes of a message that is redriven. One that changes nothing
// leaves no trace.
type Edit struct {
	Body    []byte         // at most [nixie.MaxBody] bytes
	Headers []nixie.Header // all of them; at most [nixie.MaxHeaders] bytes

	// Revision is that of the letter from which the edit was made. One that changed
	// since is a CodeConflict: somebody else may have edited it.
	Revision int64
}

// Check says what is wrong with an edit: it has the limits of what is enqueued.
func (e *Edit) Check() error {
	edited := nixie.Message{Queue: "any", Body: e.Body, Headers: e.Headers}
	if err := edited.Check(); err != nil {
		return nixie.Errorf(nixie.CodeOf(err), "edited %w", err)
	}
	return nil
}

// CheckResolutions refuses a call that is too large.
func CheckResolutions(resolutions []Resolution) error {
	size := 0
	for i := range resolutions {
		if e := resolutions[i].Edit; e != nil {
			size += len(e.Body)
		}
	}
	if err := checkBytes("edited bodies", size); err != nil {
		return err
	}
	return CheckCall(len(resolutions))
}
