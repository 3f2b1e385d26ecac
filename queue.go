package nixie

import (
	"strings"
	"time"
	"unicode/utf8"
)

// QueueSettings are kept by the store with the queue. Zero fields mean the
// defaults, which nixie policy show prints.
type QueueSettings struct {
	Paused      bool          `json:"paused"`
	PausedNote  string        `json:"paused_note,omitempty"`  // why and by whom
	Lease       time.Duration `json:"lease,omitempty"`        // 0 is [DefaultLease]
	DedupeScope DedupeScope   `json:"dedupe_scope,omitempty"` // empty is [DedupeActive]
	Closed      bool          `json:"closed,omitempty"`       // takes no new messages; those that are there go on
	ClosedNote  string        `json:"closed_note,omitempty"`  // why and by whom
	Order       Order         `json:"order,omitempty"`        // of each stream; empty is [OrderNone]
	DeadHead    DeadHead      `json:"dead_head,omitempty"`    // with [OrderStrict]; empty is [DeadBlocks]
	PriorityAge time.Duration `json:"priority_age,omitempty"` // wait that is worth one priority; 0 is [DefaultPriorityAge], −1 none is

	// Policy of those who work on the queue and have none of their own, as
	// [policy.ParseDocument] reads it; empty is the profile nixie. A store keeps it and
	// knows no more of it than that it has at most [MaxPolicyText] bytes.
	//
	// [policy.ParseDocument]: https://pkg.go.dev/github.com/nixie-go/nixie/policy#ParseDocument
	Policy string `json:"policy,omitempty"`

	// How long is kept what has ended, at least; [Forever] is for ever.
	Retention       time.Duration `json:"retention,omitempty"`        // ended messages without a letter; 0 is [DefaultRetention]
	LetterRetention time.Duration `json:"letter_retention,omitempty"` // resolved and discarded letters with their messages; 0 is for ever
	AuditRetention  time.Duration `json:"audit_retention,omitempty"`  // entries of the audit; 0 is [DefaultAuditRetention]
}

// Order says what the messages of one stream owe to each other. At most one
// message of an ordered stream is leased at any time.
type Order string

// The orders of a stream.
const (
	OrderNone    Order = "none"    // nothing: a stream is only a name; the default
	OrderStrict  Order = "strict"  // in the order they came; who waits for a retry keeps the others waiting
	OrderRelaxed Order = "relaxed" // by the time they are due: who waits lets the others pass
)

// DeadHead says what a dead message means to those that came after it in a
// strict stream.
type DeadHead string

// What a dead message means to its followers.
const (
	DeadBlocks DeadHead = "block" // they wait until its letter is redriven with success, discarded or unblocked
	DeadFrees  DeadHead = "free"  // they go on; redriven it is appended to its stream
)

// Ordered reports whether streams mean anything in the queue.
func (q QueueSettings) Ordered() bool { return q.Order == OrderStrict || q.Order == OrderRelaxed }

// Blocks reports whether a dead message keeps its followers waiting.
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

// noAgeing is longer than any message waits: 30 years, four of which still fit
// beside a moment in nanoseconds.
const noAgeing = 30 * 365 * 24 * time.Hour

// LeaseOrDefault is how long a claim holds when the receiver does not say.
func (q QueueSettings) LeaseOrDefault() time.Duration {
	if q.Lease == 0 {
		return DefaultLease
	}
	return q.Lease
}

// Check says what is wrong with settings.
func (q QueueSettings) Check() error {
	if q.Lease != 0 && (q.Lease < MinLease || q.Lease > MaxLease) {
		return Errorf(CodeInvalid, "lease is %s: give one from %s to %s, or 0 for %s", q.Lease, MinLease, MaxLease, DefaultLease)
	}
	if err := q.checkRetentions(); err != nil {
		return err
	}
	if len(q.Policy) > MaxPolicyText {
		return Errorf(CodeLimit, "policy has %d bytes, the limit is %d: shorten it", len(q.Policy), MaxPolicyText)
	}
	if !utf8.ValidString(q.Policy) || strings.ContainsRune(q.Policy, 0) {
		return Errorf(CodeInvalid, "policy is no text: write it in UTF-8")
	}
	switch q.DedupeScope {
	case "", DedupeActive, DedupeUnresolved, DedupeEver:
	default:
		return Errorf(CodeInvalid, "dedupe scope is %q: give active, unresolved or ever", q.DedupeScope)
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
		return Errorf(CodeInvalid, "priority age is %s: give one from %s to %s, 0 for %s or -1ns for none", q.PriorityAge, MinPriorityAge, MaxPriorityAge, DefaultPriorityAge)
	}
	return nil
}

// Defaults of a queue.
const (
	DefaultLease = 30 * time.Second
	Heartbeat    = 10 * time.Second // of a lease of 30 s: a third

	DefaultPriorityAge = time.Hour // nobody waits longer than eight of them for those of other priorities
)
