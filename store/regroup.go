package store

import "github.com/nixie-go/nixie"

// Regrouping gives letters whose groups an earlier build named those of this one, see
// [Features.Regroup].
type Regrouping struct {
	Letters       []nixie.Letter // ID and Revision as they were read, Signature and Fingerprint as they will be
	Actor, Reason string         // of the entry in the audit of each queue; without an actor there is none
	DryRun        bool           // answer only
}

// Check says what is wrong with the call as a whole.
func (r *Regrouping) Check() error {
	if r.Actor != "" {
		if err := checkBy(r.Actor, r.Reason); err != nil {
			return err
		}
	}
	return CheckCall(len(r.Letters))
}
