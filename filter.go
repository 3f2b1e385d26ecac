package nixie

import (
	"reflect"
	"time"
)

// Filter chooses letters or messages. All fields that are set have to hold; a field with
// several values holds for any of them. The zero filter matches everything, which a
// destructive verb accepts only when the operator says so explicitly. Package filter reads and
// writes the text form.
type Filter struct {
	IDs          []ID     // of the letter or of its message
	Endings      []string // see [ID.EndsWith]; IDs and Endings hold for any of both
	Queues       []string // exact
	Types        []string
	Keys         []string
	Streams      []string
	Statuses     []Status // letters
	States       []State  // messages
	Reasons      []Reason // of the letter, or of the message's newest failure
	Classes      []Class
	Causes       []Cause
	Fingerprints []string
	Signature    string   // part of it, in any case
	Text         string   // part of the last failure's text, in any case
	ErrorTypes   []string // parts of the last failure's type, in any case: one of them is in it
	Redrivable   *bool
	NeedsReview  *bool

	Age         Durations // time since it died, or since a message was enqueued
	Died        Times     // when it died, or when a message was enqueued
	Due         Times     // when a scheduled message is due; nothing else has such a time
	FirstFailed Times
	LastFailed  Times
	Redrives    Range
	Attempts    Range // of a letter as [Letter.Spent] says, as Crashes
	Deliveries  Range
	Crashes     Range
	Operation   ID

	Headers []Header // the message has all of them: names and values are exact
	Not     []Filter // none of them matches; each has one field set
}

// IsZero reports whether no field of the filter is set, so that it matches all.
func (f Filter) IsZero() bool {
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		part := v.Field(i)
		if part.Kind() == reflect.Slice && part.Len() == 0 { // matches like nil
			continue
		}
		if !part.IsZero() {
			return false
		}
	}
	return true
}

// Range bounds a number on both sides, ends included; nil is open.
type Range struct{ Min, Max *int64 }

// Durations bounds a duration on both sides, ends included; 0 is open.
type Durations struct{ Min, Max time.Duration }

// Times bounds a moment: After is included, Before is not; zero is open.
type Times struct{ After, Before time.Time }

// Holds reports whether n is within the range.
func (r Range) Holds(n int64) bool {
	return (r.Min == nil || n >= *r.Min) && (r.Max == nil || n <= *r.Max)
}

// Holds reports whether d is within the bounds.
func (b Durations) Holds(d time.Duration) bool {
	return (b.Min == 0 || d >= b.Min) && (b.Max == 0 || d <= b.Max)
}

// Holds reports whether t is within the bounds.
func (b Times) Holds(t time.Time) bool {
	return (b.After.IsZero() || !t.Before(b.After)) && (b.Before.IsZero() || t.Before(b.Before))
}
