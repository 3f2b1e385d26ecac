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
// messages need, all of them fail alike. Those with the same text are known by it, and
// others by its shape. A new one takes the place of another.
type groups struct {
	seed   maphash.Seed
	texts  [groupsKept]atomic.Pointer[member]
	shapes [groupsKept]atomic.Pointer[group]
}

// member is a text of a group.
type member struct {
	text string
	*group
}

// group is all that [Signature] depends on, and what it said.
type group struct {
	groupKey
	shape              string // of the text
	label, fingerprint string
}

// groupKey is what a group depends on beside its text.
type groupKey struct {
	class       nixie.Class
	reason      nixie.Reason
	step, stack string
	exited      bool
	exit        int
}

// of is [Signature] of f.
func (g *groups) of(f *nixie.Failure) (label, fingerprint string) {
	if len(f.Text)+len(f.Stack)+len(f.Step)+len(f.Reason)+len(f.Class) > maxGroupText {
		return Signature(f)
	}
	key := groupKey{class: f.Class, reason: f.Reason, step: f.Step, stack: f.Stack}
	if f.ExitCode != nil {
		key.exited, key.exit = true, *f.ExitCode
	}
	at := &g.texts[maphash.String(g.seed, f.Text)%groupsKept]
	if m := at.Load(); m != nil && m.text == f.Text && m.groupKey == key {
		return m.label, m.fingerprint
	}
	has := g.shaped(f, key)
	at.Store(&member{f.Text, has})
	return has.label, has.fingerprint
}

// shaped is the group of f by the shape of its text.
func (g *groups) shaped(f *nixie.Failure, key groupKey) *group {
	var room [256]byte
	shape := appendShape(room[:0], f)
	at := &g.shapes[maphash.Bytes(g.seed, shape)%groupsKept]
	has := at.Load()
	if has == nil || has.groupKey != key || has.shape != string(shape) {
		has = &group{groupKey: key, shape: string(shape)}
		has.label, has.fingerprint = signature(f, has.shape)
		at.Store(has)
	}
	return has
}
