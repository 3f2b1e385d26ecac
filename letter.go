package nixie

import "time"

// Letter holds a dead message with everything that is known of its failures.
type Letter struct {
	ID      ID
	Message Message

	History        []Failure // oldest first, at most [MaxHistory]
	HistoryDropped int       // number of failures that History no longer has

	Cause       Cause
	Class       Class  // of the last failure
	Reason      Reason // of the last failure
	Signature   string
	Fingerprint string
	Status      Status
	Redrivable  bool
	NeedsReview bool
	Rule        string // rule of policy that decided Redrivable and NeedsReview

	FirstFailedAt time.Time
	LastFailedAt  time.Time
	DiedAt        time.Time // of the latest death
	ResolvedAt    time.Time // when it was resolved or discarded

	KeyTaken  bool      // another message holds the dedupe key: the letter cannot be redriven until it is free
	Operation ID        // the redrive that moved the letter last
	Note      string    // reason and actor of a discard or hold; the next move empties it
	Revision  int64     // grows with every change
	Notes     []Note    // by operators, oldest first, at most [MaxNotes]; they survive redrives
	Original  *Original // message before its first edit; nil if it was not edited or not read whole
	Artifacts []Attachment

	// Damage names the parts of the record that could not be read, and why. A damaged letter is
	// shown with the parts that are left, never skipped.
	Damage []string
}

// Note is a comment on a letter by an operator.
type Note struct {
	At   time.Time
	By   string
	Text string // at most [MaxReason] bytes
}

// Original keeps the body and headers that a message had when it was accepted. Edits do not change
// it; the audit has each edit.
type Original struct {
	Body    []byte
	Headers []Header
	Hash    Hash      // of Body
	At      time.Time // of the first edit
	By      string    // actor of the first edit
}

// Status says how far the office is with a letter.
type Status string

// The statuses of a letter.
const (
	StatusOpen        Status = "open"        // waits for an operator
	StatusReview      Status = "review"      // a person has to look before a redrive
	StatusRedriving   Status = "redriving"   // its message is queued or leased again
	StatusQuarantined Status = "quarantined" // redriven too often; an operator needs a reason to move it
	StatusResolved    Status = "resolved"    // its message succeeded
	StatusDiscarded   Status = "discarded"   // an operator gave it up, with a reason
)

// Statuses lists every status once.
func Statuses() []Status {
	return []Status{StatusOpen, StatusReview, StatusRedriving, StatusQuarantined, StatusResolved, StatusDiscarded}
}

// Unresolved reports whether the letter still needs an operator or a worker.
func (s Status) Unresolved() bool { return s != StatusResolved && s != StatusDiscarded }

// Cause says why a message died.
type Cause string

// The causes.
const (
	CauseExhausted Cause = "exhausted" // no attempts or deliveries are left
	CausePermanent Cause = "permanent" // no attempt will succeed
	CausePoison    Cause = "poison"    // its holders vanished again and again
	CauseExpired   Cause = "expired"   // past its ExpiresAt
	CauseMaxAge    Cause = "max-age"   // older than the policy allows
	CauseOperator  Cause = "operator"  // an operator buried it
	CauseAdopted   Cause = "adopted"   // it died elsewhere, and its letter was adopted
)

// Causes lists every cause once.
func Causes() []Cause {
	return []Cause{CauseExhausted, CausePermanent, CausePoison, CauseExpired, CauseMaxAge, CauseOperator, CauseAdopted}
}

// Spent returns the attempts and crashes by which filters and counts find a letter: those of the
// generation in which its message died, and zero while a redrive is on its way.
func (l *Letter) Spent() (attempts, crashes int) {
	if l.Status == StatusRedriving {
		return 0, 0
	}
	return l.Message.Attempts, l.Message.Crashes
}
