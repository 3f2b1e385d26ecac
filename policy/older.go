package policy

import (
	"strings"

	"github.com/nixie-go/nixie"
)

// fingerprintLength is that of every version.
const fingerprintLength = len(fingerprintVersion) + 16

// Outdated reports whether an earlier version of [Signature] made the fingerprint. Those of other
// deciders are not outdated.
func Outdated(fingerprint string) bool {
	return len(fingerprint) == fingerprintLength &&
		(strings.HasPrefix(fingerprint, "v1-") || strings.HasPrefix(fingerprint, "v2-"))
}

// GroupOf names the group of a letter. If its fingerprint is [Outdated], it is read anew from the
// newest failure of the history and from the body, so the letter must be whole; nothing else
// changes. A letter that has lost these keeps its group.
func GroupOf(l *nixie.Letter) (label, fingerprint string) {
	if !Outdated(l.Fingerprint) || len(l.History) == 0 || len(l.Damage) > 0 {
		return l.Signature, l.Fingerprint
	}
	newest := &l.History[len(l.History)-1]
	if l.Cause == nixie.CauseOperator { // who held it did not look at the body
		return Signature(newest)
	}
	return SignatureOf(newest, &l.Message)
}
