package policy

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/nixie-go/nixie"
)

// Limits of what is remembered of groups.
const (
	groupsKept   = 64
	maxGroupText = 4 << 10 // bytes of what one depends on
)

// groups remembers which group failures belong to: when something is down that many
// messages need, all of them fail alike. A new one takes the place of another.
type groups struct {
	seed maphash.Seed
	kept [groupsKept]atomic.Pointer[group]
}

// group is all that [Signature] depends on, and what it said.
type group struct {
	groupKey
	label, fingerprint string
}

type groupKey struct {
	class             nixie.Class
	reason            nixie.Reason
	step, text, stack string
	exited            bool
	exit              int
}

// of is [Signature] of f.
func (g *groups) of(f *nixie.Failure) (label, fingerprint string) {
	if len(f.Text)+len(f.Stack)+len(f.Step)+len(f.Reason)+len(f.Class) > maxGroupText {
		return Signature(f)
	}
	key := groupKey{class: f.Class, reason: f.Reason, step: f.Step, text: f.Text, stack: f.Stack}
	if f.ExitCode != nil {
		key.exited, key.exit = true, *f.ExitCode
	}
	at := &g.kept[maphash.String(g.seed, f.Text)%groupsKept]
	has := at.Load()
	if has == nil || has.groupKey != key {
		has = &group{groupKey: key}
		has.label, has.fingerprint = Signature(f)
		at.Store(has)
	}
	return has.label, has.fingerprint
}
