package nixie

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"
)

// QueueSettings are the settings of a queue. The store keeps them. A zero field means its default;
// the command nixie policy show prints the defaults.
type QueueSettings struct {
	Paused      bool          `json:"paused"`
	PausedNote  string        `json:"paused_note,omitempty"`  // why and by whom
	PausedAt    time.Time     `json:"paused_at,omitzero"`     // since when, if an operator paused it
	Lease       time.Duration `json:"lease,omitempty"`        // 0 is [DefaultLease]
	DedupeScope DedupeScope   `json:"dedupe_scope,omitempty"` // empty is [DedupeActive]
	Closed      bool          `json:"closed,omitempty"`       // accepts no new messages; its messages go on
	ClosedNote  string        `json:"closed_note,omitempty"`  // why and by whom
	Order       Order         `json:"order,omitempty"`        // of each stream; empty is [OrderNone]
	DeadHead    DeadHead      `json:"dead_head,omitempty"`    // with [OrderStrict]; empty is [DeadBlocks]
	PriorityAge time.Duration `json:"priority_age,omitempty"` // wait that equals one step of priority; 0: [DefaultPriorityAge], −1: none

	// DeadLetterTo names a queue that hears of each message that dies here: a notice, of type
	// [TypeDeadLetter], is enqueued with the letter, all or nothing. Handling it leaves the letter
	// as it is. A way of notices from queue to queue has an end, and none of its queues is closed:
	// the store refuses other settings with [CodeConflict]. Empty is none.
	DeadLetterTo string `json:"dead_letter_to,omitempty"`

	// Policy applies to workers of the queue that have no policy of their own. Its text is read by
	// policy.ParseDocument; empty is the profile nixie. The store keeps the text and checks only
	// that it has at most [MaxPolicyText] bytes.
	Policy string `json:"policy,omitempty"`

	// The least time for which the store keeps what has ended; [Forever] means without end.
	Retention       time.Duration `json:"retention,omitempty"`        // ended messages without a letter; 0 is [DefaultRetention]
	LetterRetention time.Duration `json:"letter_retention,omitempty"` // resolved and discarded letters with their messages; 0 is [Forever]
	AuditRetention  time.Duration `json:"audit_retention,omitempty"`  // entries of the audit; 0 is [DefaultAuditRetention]
}

// Order says in which order the messages of one stream are delivered. At most one message of an
// ordered stream is leased at any time.
type Order string

// The orders of a stream.
const (
	OrderNone    Order = "none"    // any order: a stream is only a name; the default
	OrderStrict  Order = "strict"  // as enqueued; a message that waits for a retry holds up its followers
	OrderRelaxed Order = "relaxed" // by the time they are due; the followers of a waiting message go on
)

// DeadHead says what happens to the followers of a dead message in a strict stream.
type DeadHead string

// What happens to the followers of a dead message.
const (
	DeadBlocks DeadHead = "block" // they wait until its letter is redriven with success, discarded or unblocked
	DeadFrees  DeadHead = "free"  // they go on; a redrive appends the message to its stream
)

// Ordered reports whether the queue delivers the messages of a stream in an order.
func (q QueueSettings) Ordered() bool { return q.Order == OrderStrict || q.Order == OrderRelaxed }

// Blocks reports whether a dead message holds up its followers.
func (q QueueSettings) Blocks() bool { return q.Order == OrderStrict && q.DeadHead != DeadFrees }

// DueRank returns the sort key of a message that is due at the given time in nanoseconds: a
// claim takes low ranks first. One step of priority is worth PriorityAge, so a message of low
// priority that has waited long enough goes before newer ones of high priority. Without ageing
// a step of priority is worth more than any wait.
func (q QueueSettings) DueRank(due int64, priority int) int64 {
	age := q.PriorityAge
	switch {
	case age == 0:
		age = DefaultPriorityAge
	case age < 0:
		age = noAgeing
	}
	return due - int64(priority)*int64(age)
}

// noAgeing is longer than any wait. Four times as much, for the highest priority, can be added to a
// moment in nanoseconds.
const noAgeing = 30 * 365 * 24 * time.Hour

// LeaseOrDefault returns the length of a lease for receivers that do not set one.
func (q QueueSettings) LeaseOrDefault() time.Duration {
	if q.Lease == 0 {
		return DefaultLease
	}
	return q.Lease
}

// Check says what is wrong with the settings.
func (q QueueSettings) Check() error {
	if q.Lease != 0 && (q.Lease < MinLease || q.Lease > MaxLease) {
		return Errorf(CodeInvalid, "lease is %s: give one from %s to %s, or 0 for %s", q.Lease, MinLease, MaxLease, DefaultLease)
	}
	if err := q.checkRetentions(); err != nil {
		return err
	}
	if q.DeadLetterTo != "" {
		if err := CheckName("queue of dead letters", q.DeadLetterTo); err != nil {
			return err
		}
	}
	if len(q.Policy) > MaxPolicyText {
		return Errorf(CodeLimit, "policy has %d bytes, the limit is %d: shorten it", len(q.Policy), MaxPolicyText)
	}
	if !utf8.ValidString(q.Policy) || strings.ContainsRune(q.Policy, 0) {
		return Errorf(CodeInvalid, "policy is no text: write it in UTF-8 without NUL")
	}
	switch q.DedupeScope {
	case "", DedupeQueued, DedupeActive, DedupeUnresolved, DedupeEver:
	default:
		return Errorf(CodeInvalid, "dedupe scope is %q: give queued, active, unresolved or ever", q.DedupeScope)
	}
	switch q.Order {
	case "", OrderNone, OrderStrict, OrderRelaxed:
	default:
		return Errorf(CodeInvalid, "order is %q: give none, strict or relaxed", q.Order)
	}
	switch {
	case q.DeadHead != "" && q.DeadHead != DeadBlocks && q.DeadHead != DeadFrees:
		return Errorf(CodeInvalid, "dead head is %q: give block or free", q.DeadHead)
	case q.DeadHead == DeadBlocks && q.Order != OrderStrict:
		return Errorf(CodeInvalid, "dead head is block: that needs the order strict, the queue's is %q", q.Order)
	case q.PriorityAge != 0 && q.PriorityAge != -1 && (q.PriorityAge < MinPriorityAge || q.PriorityAge > MaxPriorityAge):
		return Errorf(CodeInvalid, "priority age is %s: give one from %s to %s, 0 for %s or -1ns for none",
			q.PriorityAge, MinPriorityAge, MaxPriorityAge, DefaultPriorityAge)
	}
	return nil
}

// Defaults of a queue.
const (
	DefaultLease = 30 * time.Second
	Heartbeat    = 10 * time.Second // a third of DefaultLease

	DefaultPriorityAge = time.Hour // a message waits at most eight times as long for others of higher priority
)

// Retentions: the times for which a store keeps what has ended.
const (
	DefaultRetention      = 7 * 24 * time.Hour  // of messages without a letter
	DefaultAuditRetention = 90 * 24 * time.Hour // of entries of the audit
	MinRetention          = time.Minute

	Forever time.Duration = -1 // a retention that never removes anything
)

func (q QueueSettings) checkRetentions() error {
	for _, r := range [...]struct {
		name string
		set  time.Duration
	}{{"retention", q.Retention}, {"letter retention", q.LetterRetention}, {"audit retention", q.AuditRetention}} {
		if r.set != 0 && r.set != Forever && r.set < MinRetention {
			return Errorf(CodeInvalid, "%s is %s: give at least %s, 0 for the default, or −1 for ever", r.name, r.set, MinRetention)
		}
	}
	return nil
}

// Kept returns the retentions of the queue, with the defaults filled in: for messages without a
// letter, for resolved and discarded letters, and for the audit.
func (q QueueSettings) Kept() (messages, letters, audit time.Duration) {
	return cmp.Or(q.Retention, DefaultRetention), cmp.Or(q.LetterRetention, Forever), cmp.Or(q.AuditRetention, DefaultAuditRetention)
}
