package nixie

import (
	"cmp"
	"time"
)

// How long is kept what has ended.
const (
	DefaultRetention      = 7 * 24 * time.Hour  // messages without a letter
	DefaultAuditRetention = 90 * 24 * time.Hour // entries of the audit
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

// Kept is how long the queue keeps what has ended: messages without a letter,
// resolved and discarded letters, and the audit. [Forever] is for ever.
func (q QueueSettings) Kept() (messages, letters, audit time.Duration) {
	return cmp.Or(q.Retention, DefaultRetention), cmp.Or(q.LetterRetention, Forever), cmp.Or(q.AuditRetention, DefaultAuditRetention)
}
