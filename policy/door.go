package policy

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// atTheDoor is the error of a failure of [Policy.Admit]: nothing ran, and a limit is to blame.
type atTheDoor struct {
	limit string
	last  *nixie.Failure // that the message had before; nil: none that is known
}

func (e *atTheDoor) Error() string { return "limit " + e.limit }

// Recall tells a failure of [Policy.Admit] what its message failed of before: the letter has the
// label and the fingerprint of that, and so is in the group of its cause. Recall asks last only for
// a message that a limit ends. With nil, which is no failure, nothing changes.
func Recall(f *nixie.Failure, last func() *nixie.Failure) {
	if door, ok := errors.AsType[*atTheDoor](f.Err); ok {
		door.last = last()
	}
}

// group returns label and fingerprint of a letter, and the rule of one that died at the door.
func (p *Policy) group(f *nixie.Failure, m *nixie.Message) (label, fingerprint, rule string) {
	door, ok := errors.AsType[*atTheDoor](f.Err)
	if !ok {
		label, fingerprint = p.groups.of(f, m)
		return label, fingerprint, ""
	}
	if door.last != nil {
		f = door.last
	}
	label, fingerprint = p.groups.of(f, m)
	return label, fingerprint, "limit:" + door.limit
}

// doorTexts match what refusal says, for it is all that tells such a failure in a history.
var doorTexts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^the message was (?:past its expiry before it could|past max_age, which is|` +
		`claimed \d+ times without|executed \d+ times before)`)
})

// refusal returns which limit keeps a delivery from running, what its failure says, and with which
// reason and class. The limit is empty if none does.
func (p *Policy) refusal(d *nixie.Delivery, now time.Time) (limit, text string, reason nixie.Reason, class nixie.Class) {
	reason, class = lastOf(d)
	c := p.of(d.Type, reason)
	switch {
	case past(d.ExpiresAt, now):
		return "expires_at", "the message was past its expiry before it could be run", nixie.ReasonMaxAge, nixie.ClassUnknown
	case d.Attempts > 1 && p.inEveryCase(d, func(c *Config) bool { return c.aged(d, now) }):
		return "max_age", fmt.Sprintf("the message was past max_age, which is %s, before it could be run again", c.MaxAge),
			nixie.ReasonMaxAge, nixie.ClassUnknown
	case p.inEveryCase(d, func(c *Config) bool { return c.MaxDeliveries != none && countedClaims(d) > c.MaxDeliveries }):
		return "max_deliveries", fmt.Sprintf("the message was claimed %d times without an outcome, and max_deliveries is %d",
			countedClaims(d)-1, c.MaxDeliveries), reason, class
	case p.inEveryCase(d, func(c *Config) bool { return c.outOfAttempts(d) }):
		return "max_attempts", fmt.Sprintf("the message was executed %d times before, and max_attempts is %d", d.Attempts-1,
			c.MaxAttempts), reason, class
	}
	return "", "", "", ""
}
