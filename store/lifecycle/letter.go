package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Letter is the part of a letter that its moves change. A store fills it as it does a
// [Message]; what a move does not ask for may be left out: see each method. Moments are
// nanoseconds since 1970, and 0 is none.
type Letter struct {
	ID       nixie.ID
	Status   nixie.Status // "" before the first death
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

	InStream, Blocks bool  // its message is dead in an ordered stream, and others wait for that
	Rank             int64 // the place there; 0 is none
}

// Failure is what a letter shows of a failure of its message.
type Failure struct {
	At     int64
	Class  nixie.Class
	Reason nixie.Reason
	Text   string
}

// Die makes a letter say how its message died now: one that is new, or that of a message that
// was redriven. First and last are the ends of the message's history, nil if that is empty.
// It needs ID, Status, Revision and FirstFailed.
func (l *Letter) Die(m *Message, e End, b *nixie.Burial, set *nixie.QueueSettings, first, last *Failure, now int64) error {
	if err := l.Follow(e, now); err != nil {
		return err
	}
	l.Cause, l.Signature, l.Fingerprint, l.Redrivable, l.NeedsReview, l.Rule = b.Cause, b.Signature, b.Fingerprint, b.Redrivable, b.NeedsReview, b.Rule
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

// Follow moves a letter on as its message ends, see [Follows]. It needs ID, Status and
// Revision.
func (l *Letter) Follow(e End, now int64) error {
	if err := l.Follows(e); err != nil {
		return err
	}
	l.Note = e.Note
	return l.move(e.Event, now)
}

// Follows says why a letter cannot follow the end of its message, which was on its way here,
// nil if it can: the letter is new, and has no status, or it was redriven.
func (l *Letter) Follows(e End) error {
	if l.Status != "" && l.Status != nixie.StatusRedriving {
		return nixie.Errorf(nixie.CodeInternal, "letter %s is %s while its message was on its way: run nixie verify", l.ID, l.Status)
	}
	_, err := l.next(e.Event)
	return err
}

// Resolve does to a letter and its message what a resolution asks for that [Refuse] found
// possible, but for a purge, which moves nothing: it removes both. Ordered is that the message
// has a stream, in a queue with an order. A redriven message that others have passed, or may
// have, goes behind them: Resolve reports that it needs a new rank. An error is damage, and
// has changed neither.
//
// It needs ID, Status, Revision, InStream, Blocks and Rank; and the message if the event is a
// redrive or a confirmation.
func (l *Letter) Resolve(m *Message, r *store.Resolution, ordered bool, now int64) (appends bool, err error) {
	letter, message := *l, *m
	if appends, err = letter.resolve(&message, r, ordered, now); err != nil {
		return false, err // nothing has changed
	}
	*l, *m = letter, message
	return appends, nil
}

func (l *Letter) resolve(m *Message, r *store.Resolution, ordered bool, now int64) (appends bool, err error) {
	if !r.Operation.IsZero() {
		l.Operation = r.Operation
	}
	if r.Event == store.OnNote {
		l.Revision++
		return false, nil
	}
	redriven := l.Status == nixie.StatusRedriving
	if err := l.move(r.Event, now); err != nil {
		return false, err
	}
	l.Note = r.Note()
	if r.Reviewed {
		l.Redrivable, l.NeedsReview, l.Rule = true, false, store.Reviewed
	}
	switch r.Event {
	case store.OnRedrive:
		appends = ordered && !l.Blocks
		err = m.Live(now)
		if m.Ordered = ordered; ordered {
			m.State, m.Rank, m.Gap = Behind, l.Rank, m.Gap || appends
		}
	case store.OnConfirm:
		if !redriven { // its next life begins with the broker that took it
			err = m.Live(now)
		}
		if err == nil {
			err = m.End(store.OnCancel, now) // nobody may work on it here as well
		}
	case store.OnRestore:
		l.InStream = ordered && l.Rank > 0 // it does not block: its followers may have gone
		return false, nil
	case store.OnDiscard:
	default:
		return false, nil
	}
	l.InStream, l.Blocks = false, false
	return appends, err
}

// DieElsewhere makes a letter say how its message died again with a foreign broker, where our
// order of streams does not hold. What was given is on a way of [store.Comeback], see
// [CameBack]. It needs ID, Status and Revision.
func (l *Letter) DieElsewhere(given *nixie.Letter, now int64) error {
	for _, on := range store.Comeback(l.Status, given.Status) {
		if err := l.move(on, now); err != nil {
			return err
		}
	}
	l.Cause, l.Class, l.Reason, l.Signature, l.Fingerprint = given.Cause, given.Class, given.Reason, given.Signature, given.Fingerprint
	l.Redrivable, l.NeedsReview, l.Rule, l.Note, l.Operation = given.Redrivable, given.NeedsReview, given.Rule, given.Note, given.Operation
	l.LastFailed, l.Died = Nanos(given.LastFailedAt), Nanos(given.DiedAt)
	l.InStream, l.Blocks, l.Rank = false, false, 0
	return nil
}

// move brings a letter to where the table of moves says.
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

// next is the status of a letter after an event that was found possible, or that took place
// elsewhere. That the table of moves forbids it is damage.
func (l *Letter) next(on store.Event) (nixie.Status, error) {
	next, ok := store.NextStatus(l.Status, on)
	if !ok {
		return "", nixie.Errorf(nixie.CodeInternal, "letter %s is %s and cannot follow %s: run nixie verify", l.ID, l.Status, on)
	}
	return next, nil
}
