package lifecycle

import "github.com/nixie-go/nixie"

// Adopted returns the dead message of a letter from elsewhere. An ID that is not given stays zero.
func Adopted(l *nixie.Letter) Message {
	given := &l.Message
	m := Message{
		ID: given.ID, State: Dead, Attempts: given.Attempts, Deliveries: given.Deliveries, Crashes: given.Crashes,
		Generation: max(given.Generation, 1), Redrives: given.Redrives, Number: int64(given.Deliveries),
		Received: Nanos(given.FirstReceivedAt), Steps: given.Steps, Gap: given.OrderGap,
		Ended: Nanos(given.EndedAt), Redriven: Nanos(given.RedrivenAt),
	}
	if m.Ended == 0 {
		m.Ended = Nanos(l.DiedAt)
	}
	return m
}

// AdoptedLetter returns a letter from elsewhere. An ID that is not given stays zero.
func AdoptedLetter(given *nixie.Letter) *Letter {
	l := &Letter{
		ID: given.ID, Status: given.Status, Revision: max(given.Revision, 1), Cause: given.Cause, Class: given.Class, Reason: given.Reason,
		Signature: given.Signature, Fingerprint: given.Fingerprint, Redrivable: given.Redrivable, NeedsReview: given.NeedsReview,
		Rule: given.Rule, Note: given.Note, Operation: given.Operation, Died: Nanos(given.DiedAt),
		FirstFailed: Nanos(given.FirstFailedAt), LastFailed: Nanos(given.LastFailedAt),
	}
	if n := len(given.History); n > 0 {
		l.Text = given.History[n-1].Text
	}
	return l
}
