package nixie

import (
	"cmp"
	"slices"
	"strconv"
)

// Tally is how many messages that still retry share a value.
type Tally struct {
	Key    string `json:"key"`
	Queued int64  `json:"queued"` // they wait, for a retry or for their turn
	Leased int64  `json:"leased"` // their next attempt runs
}

// Count is how many they are.
func (t Tally) Count() int64 { return t.Queued + t.Leased }

// SortTallies puts most first, and attempts in the order of their number.
func SortTallies(list []Tally, by GroupBy) {
	slices.SortFunc(list, func(a, b Tally) int {
		if by == ByAttempts {
			return cmp.Compare(number(a.Key), number(b.Key))
		}
		return cmp.Or(cmp.Compare(b.Count(), a.Count()), cmp.Compare(a.Key, b.Key))
	})
}

// number is a key that is one; the stores make no others of attempts.
func number(key string) int {
	n, err := strconv.Atoi(key)
	if err != nil {
		return 0
	}
	return n
}

// Retrying reports whether the message is on its way again after a failure: it
// is queued or leased, has begun an attempt in this life and failed before.
func (m *Message) Retrying() bool {
	return (m.State == Queued || m.State == Leased) && m.Attempts > 0 && m.LastReason != ""
}

// TalliedBy lists what a tally can be by.
func TalliedBy() []GroupBy { return []GroupBy{ByAttempts, ByReason, ByType, ByQueue} }
