package nixie

import "time"

// Letter is the envelope of a dead message with its whole story.
type Letter struct {
	ID      ID
	Message Message

	History        []Failure // oldest first, at most [MaxHistory]
	HistoryDropped int       // how many failures are not in History any more

	Cause       Cause
	Class       Class  // of the last failure
	Reason      Reason // of the last failure
	Signature   string
	Fingerprint string
	Status      Status
	Redrivable  bool
	NeedsReview bool
	Rule        string // the rule of policy that decided the two above

	FirstFailedAt time.Time
	LastFailedAt  time.Time
	DiedAt        time.Time // of the latest death
	ResolvedAt    time.Time // when it was resolved or discarded

	KeyTaken  bool      // another message holds its dedupe key by now: it cannot be redriven meanwhile
	Operation ID        // the redrive that moved it last
	Note      string    // why it is discarded or held, and by whom; the next move empties it
	Revision  int64     // grows with every change
	Notes     []Note    // by operators, oldest first, at most [MaxNotes]; they survive redrives
	Original  *Original // what its message said before somebody edited it; nil: nobody has, or the letter was not read whole
	Artifacts []Attachment

	// Damage names the parts of the record that could not be read, and why. A
	// letter that is damaged is shown with what is left of it, never skipped.
	Damage []string
}

// Note is what somebody wrote on a letter for those who come after.
type Note struct {
	At   time.Time
	By   string
	Text string // at most [MaxReason] bytes
}

// Original is what a message said when it was accepted. It stays as it is, however often
// the message is edited; the audit has each edit.
type Original struct {
	Body    []byte
	Headers []Header
	Hash    Hash      // of Body
	At      time.Time // of the first edit
	By      string    // who made that
}

// Status is where a letter is.
type Status string

// The statuses of a letter.
const (
	StatusOpen        Status = "open"        // waits for somebody
	StatusReview      Status = "review"      // a person has to look first
	StatusRedriving   Status = "redriving"   // its message is on its way again
	StatusQuarantined Status = "quarantined" // redriven too often; only an operator with a reason moves it
	StatusResolved    Status = "resolved"    // its message succeeded
	StatusDiscarded   Status = "discarded"   // given up, with a reason
)

// Statuses lists every status once.
func Statuses() []Status {
	return []Status{StatusOpen, StatusReview, StatusRedriving, StatusQuarantined, StatusResolved, StatusDiscarded}
}

// Unresolved reports whether somebody still has to do something.
func (s Status) Unresolved() bool { return s != StatusResolved && s != StatusDiscarded }

// Cause says why a message died.
type Cause string

// The causes.
const (
	CauseExhausted Cause = "exhausted" // attempts or deliveries used up
	CausePermanent Cause = "permanent" // will not succeed
	CausePoison    Cause = "poison"    // its holders kept vanishing
	CauseExpired   Cause = "expired"   // past its ExpiresAt
	CauseMaxAge    Cause = "max-age"   // older than the policy allows
	CauseOperator  Cause = "operator"  // somebody buried it
	CauseAdopted   Cause = "adopted"   // came from elsewhere already dead
)

// Causes lists every cause once.
func Causes() []Cause {
	return []Cause{CauseExhausted, CausePermanent, CausePoison, CauseExpired, CauseMaxAge, CauseOperator, CauseAdopted}
}

// Spent returns the attempts and crashes by which a letter is found and counted: those of
// the life in which its message ended, and none while that is on its way again.
func (l *Letter) Spent() (attempts, crashes int) {
	if l.Status == StatusRedriving {
		return 0, 0
	}
	return l.Message.Attempts, l.Message.Crashes
}
