package filter

import (
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// MatchLetter reports whether the filter matches a letter as of now. It defines what a
// [nixie.Filter] means: stores that cannot ask their engine call it, and tests compare the
// others with it.
func MatchLetter(f *nixie.Filter, l *nixie.Letter, now time.Time) bool {
	var newest nixie.Failure
	if n := len(l.History); n > 0 {
		newest = l.History[n-1]
	}
	attempts, crashes := l.Spent()
	return matchCommon(f, &l.Message, l.DiedAt, now) && f.Attempts.Holds(int64(attempts)) && f.Crashes.Holds(int64(crashes)) &&
		named(f, l.ID, l.Message.ID) && !anyOfNot(f, func(n *nixie.Filter) bool { return MatchLetter(n, l, now) }) &&
		anyOf(f.Statuses, l.Status) && anyOf(f.Reasons, l.Reason) &&
		anyOf(f.Classes, l.Class) && anyOf(f.Causes, l.Cause) &&
		containsFold(l.Signature, f.Signature) && containsFold(newest.Text, f.Text) && containsOne(newest.Type, f.ErrorTypes) &&
		anyOf(f.Fingerprints, l.Fingerprint) && is(f.Redrivable, l.Redrivable) && is(f.NeedsReview, l.NeedsReview) &&
		f.FirstFailed.Holds(l.FirstFailedAt) && f.LastFailed.Holds(l.LastFailedAt) &&
		(f.Operation.IsZero() || f.Operation == l.Operation)
}

// MatchMessage reports whether the filter matches a message as of now, whose newest failure has a
// type. A filter on a property that only letters have matches no message.
func MatchMessage(f *nixie.Filter, m *nixie.Message, newest string, now time.Time) bool {
	if len(f.Statuses)+len(f.Classes)+len(f.Causes)+len(f.Fingerprints) > 0 || f.Signature != "" ||
		f.Redrivable != nil || f.NeedsReview != nil || !f.Operation.IsZero() ||
		f.FirstFailed != (nixie.Times{}) || f.LastFailed != (nixie.Times{}) {
		return false
	}
	return matchCommon(f, m, m.EnqueuedAt, now) && f.Attempts.Holds(int64(m.Attempts)) && f.Crashes.Holds(int64(m.Crashes)) &&
		named(f, m.ID, m.ID) && !anyOfNot(f, func(n *nixie.Filter) bool { return MatchMessage(n, m, newest, now) }) &&
		containsFold(m.LastFailure, f.Text) && containsOne(newest, f.ErrorTypes) &&
		anyOf(f.Reasons, m.LastReason)
}

func matchCommon(f *nixie.Filter, m *nixie.Message, began, now time.Time) bool {
	return anyOf(f.Queues, m.Queue) && anyOf(f.Types, m.Type) && anyOf(f.Keys, m.Key) &&
		anyOf(f.Streams, m.Stream) && anyOf(f.States, m.State) &&
		f.Age.Holds(now.Sub(began)) && f.Died.Holds(began) &&
		f.Redrives.Holds(int64(m.Redrives)) && f.Deliveries.Holds(int64(m.Deliveries)) &&
		(f.Due == (nixie.Times{}) || m.State == nixie.Queued && m.NotBefore.After(now) && f.Due.Holds(m.NotBefore)) &&
		!slices.ContainsFunc(f.Headers, func(h nixie.Header) bool { return !slices.Contains(m.Headers, h) })
}

// named reports whether a filter names an ID, or names none. other is a second ID of the same.
func named(f *nixie.Filter, id, other nixie.ID) bool {
	return len(f.IDs)+len(f.Endings) == 0 || slices.Contains(f.IDs, id) || slices.Contains(f.IDs, other) ||
		slices.ContainsFunc(f.Endings, id.EndsWith)
}

func anyOfNot(f *nixie.Filter, matches func(*nixie.Filter) bool) bool {
	for i := range f.Not {
		if matches(&f.Not[i]) {
			return true
		}
	}
	return false
}

func anyOf[T comparable](want []T, have T) bool {
	return len(want) == 0 || slices.Contains(want, have)
}

func containsFold(have, want string) bool {
	return want == "" || strings.Contains(strings.ToLower(have), strings.ToLower(want))
}

func containsOne(have string, parts []string) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return containsFold(have, part) })
}

func is(want *bool, have bool) bool { return want == nil || *want == have }
