package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Letter has the fields of a letter that its moves change. A store fills it as it does a [Message];
// each method says which fields it needs. Moments are nanoseconds since 1970, and 0 is none.
type Letter struct {
	ID       nixie.ID
	Status   nixie.Status // "": the letter is new
	Revision int64

	Cause                   nixie.Cause
	Class                   nixie.Class
	Reason                  nixie.Reason
	Signature, Fingerprint  string
	Redrivable, NeedsReview bool
	Rule, Note              string
	Operation               nixie.ID
	Died, Resolved          int64

	Text                    string // of the newest failure
	FirstFailed, LastFailed int64

	InStream, Blocks bool  // the message is dead in an ordered stream; its followers wait
	Rank             int64 // position in that stream; 0 is none
}

// Failure has the fields of a failure that its letter shows.
type Failure struct {
	At     int64
	Class  nixie.Class
	Reason nixie.Reason
	Text   string
}

// Die records the death of the message in its letter, which is new or redriving. First and last are
// the oldest and newest failure of the history, nil if it is empty. Die needs ID, Status, Revision
// and FirstFailed.
func (l *Letter) Die(m *Message, e End, b *nixie.Burial, set *nixie.QueueSettings, first, last *Failure, now int64) error {
	if err := l.Follow(e, now); err != nil {
		return err
	}
	l.Cause, l.Signature, l.Fingerprint = b.Cause, b.Signature, b.Fingerprint
	l.Redrivable, l.NeedsReview, l.Rule = b.Redrivable, b.NeedsReview, b.Rule
	l.Died, l.InStream, l.Rank = now, m.Ordered, m.Rank
	l.Blocks = m.Ordered && set.Blocks() && !e.Frees
	if last != nil {
		l.Class, l.Reason, l.Text, l.LastFailed = last.Class, last.Reason, last.Text, last.At
		if l.FirstFailed == 0 {
			l.FirstFailed = first.At
		}
	}
	return nil
}

// Follow moves a letter when its message ends; see [Letter.Follows]. It needs ID, Status and
// Revision.
func (l *Letter) Follow(e End, now int64) error {
	if err := l.Follows(e); err != nil {
		return err
	}
	l.Note = e.Note
	return l.move(e.Event, now)
}

// Follows returns nil if a letter can follow the end of its message, which was queued or leased:
// the letter is new, or it is redriving. Anything else is damage.
func (l *Letter) Follows(e End) error {
	if l.Status != "" && l.Status != nixie.StatusRedriving {
		return nixie.Errorf(nixie.CodeInternal, "letter %s is %s while its message was on its way: run nixie verify", l.ID, l.Status)
	}
	_, err := l.next(e.Event)
	return err
}

// Resolve applies a resolution that [Refuse] allowed to a letter and its message. It does not apply
// a purge, which removes both. Ordered says that the message belongs to an ordered stream. Resolve
// reports whether a redriven message is appended to its stream, because others may have passed it:
// it needs a new rank then. An error means damage, and changes neither letter nor message.
//
// It needs ID, Status, Revision, InStream, Blocks and Rank, and for a redrive or a confirmation the
// message.
func (l *Letter) Resolve(m *Message, r *store.Resolution, ordered bool, now int64) (appends bool, err error) {
	letter, message := *l, *m
	if appends, err = letter.resolve(&message, r, ordered, now); err != nil {
		return false, err // nothing has changed
	}
	*l, *m = letter, message
	return appends, nil
}

func (l *Letter) resolve(m *Message, r *store.Resolution, ordered bool, now int64) (appends bool, err error) {
	if r.Event == store.OnNote {
		l.Revision++
		return false, nil
	}
	redriven := l.Status == nixie.StatusRedriving
	if err := l.move(r.Event, now); err != nil {
		return false, err
	}
	if r.Event == store.OnRedrive || r.Event == store.OnConfirm && (!redriven || !r.Operation.IsZero()) {
		l.Operation = r.Operation
	}
	l.Note = r.Note()
	if r.Reviewed {
		l.Redrivable, l.NeedsReview, l.Rule = true, false, store.Reviewed
	}
	switch r.Event {
	case store.OnRedrive:
		appends = ordered && !l.Blocks
		err = m.Redrive(now)
		if m.Ordered = ordered; ordered {
			m.State, m.Rank, m.Gap = Behind, l.Rank, m.Gap || appends
		}
	case store.OnConfirm:
		if !redriven { // its next generation begins with the broker that took it
			err = m.Redrive(now)
		}
		if err == nil {
			err = m.End(store.OnCancel, now) // no worker may run it here as well
		}
	case store.OnRestore:
		l.InStream = ordered && l.Rank > 0 // it does not block again, because followers may have passed it
		return false, nil
	case store.OnDiscard:
	default:
		return false, nil
	}
	l.InStream, l.Blocks = false, false
	return appends, err
}

// DieElsewhere records a later death with a foreign broker, for which [CameBack] holds. The broker
// does not keep the order of our streams, so the letter leaves its stream. It needs ID, Status and
// Revision.
func (l *Letter) DieElsewhere(given *nixie.Letter, now int64) error {
	for _, on := range store.Comeback(l.Status, given.Status) {
		if err := l.move(on, now); err != nil {
			return err
		}
	}
	l.Cause, l.Class, l.Reason, l.Signature, l.Fingerprint = given.Cause, given.Class, given.Reason, given.Signature, given.Fingerprint
	l.Redrivable, l.NeedsReview, l.Rule, l.Note = given.Redrivable, given.NeedsReview, given.Rule, given.Note
	if !given.Operation.IsZero() { // else the redrive is known that gave it to the broker
		l.Operation = given.Operation
	}
	l.LastFailed, l.Died = Nanos(given.LastFailedAt), Nanos(given.DiedAt)
	l.InStream, l.Blocks, l.Rank = false, false, 0
	return nil
}

// move changes the status by the table of moves.
func (l *Letter) move(on store.Event, now int64) error {
	next, err := l.next(on)
	if err != nil {
		return err
	}
	l.Status, l.Resolved = next, 0
	l.Revision++
	if !next.Unresolved() {
		l.Resolved = now
	}
	return nil
}

// next returns the status after an event that was allowed, or that happened elsewhere. If the table
// of moves forbids it, the store is damaged.
func (l *Letter) next(on store.Event) (nixie.Status, error) {
	next, ok := store.NextStatus(l.Status, on)
	if !ok {
		return "", nixie.Errorf(nixie.CodeInternal, "letter %s is %s and cannot follow %s: run nixie verify", l.ID, l.Status, on)
	}
	return next, nil
}

// Regroup gives the letter the group of another one, if that was read at the revision of the
// letter. Selected tells that an operation is yet to move it. The text of a refusal does not name
// the letter, so that refusals can be counted. It needs Status and Revision.
func (l *Letter) Regroup(to *nixie.Letter, selected bool) error {
	switch {
	case l.Status == nixie.StatusRedriving:
		return nixie.Errorf(nixie.CodeConflict, "redriving: how that ends is compared with the group that it had")
	case selected:
		return nixie.Errorf(nixie.CodeConflict, "selected by an operation that has not ended: finish that first")
	case l.Revision != to.Revision:
		return nixie.Errorf(nixie.CodeConflict, "changed meanwhile")
	}
	l.Signature, l.Fingerprint = to.Signature, to.Fingerprint
	return nil
}
