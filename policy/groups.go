package policy

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/nixie-go/nixie"
)

// Limits of the memory of groups.
const (
	groupsKept   = 64
	maxGroupText = 4 << 10 // bytes that the signature of one depends on
)

// groups remembers the signatures of recent failures: when something is down that many messages
// need, all of them fail alike. It finds a failure by its text, or else by the shape of its text.
// A new text or shape replaces another one with the same hash.
type groups struct {
	seed   maphash.Seed
	texts  [groupsKept]atomic.Pointer[member]
	shapes [groupsKept]atomic.Pointer[group]
}

// member is a text of a group, for all messages whose body has none of the words.
type member struct {
	text  string
	words []string
	*group
}

// group holds the input of [Signature] and its result.
type group struct {
	groupKey
	shape              string // of the text
	label, fingerprint string
}

// groupKey holds the input of [Signature] without the text.
type groupKey struct {
	class       nixie.Class
	reason      nixie.Reason
	step, stack string
	named       string // by hand
	of          string // type of the message
	kind        string // type of the error
	exited      bool
	exit        int
}

// of returns the same as [SignatureOf], faster.
func (g *groups) of(f *nixie.Failure, m *nixie.Message) (label, fingerprint string) {
	if len(f.Text)+len(f.Stack)+len(f.Step)+len(f.Type)+len(f.Reason)+len(f.Class)+len(f.Group) > maxGroupText {
		return SignatureOf(f, m)
	}
	body := newFields(m.Body)
	key := groupKey{class: f.Class, reason: f.Reason, step: f.Step, stack: f.Stack, of: m.Type, kind: f.Type, named: f.Group}
	if f.ExitCode != nil {
		key.exited, key.exit = true, *f.ExitCode
	}
	at := &g.texts[maphash.String(g.seed, f.Text)%groupsKept]
	if known := at.Load(); known != nil && known.text == f.Text && known.groupKey == key &&
		(body == nil || known.words != nil && !mayHave(body.body, known.words)) {
		return known.label, known.fingerprint
	}
	has := g.byShape(f, key, body)
	switch {
	case body == nil:
		at.Store(&member{f.Text, nil, has})
	case body.values == nil: // no word may be in the body
		at.Store(&member{f.Text, append([]string{}, body.wanted...), has})
	}
	return has.label, has.fingerprint
}

// byShape returns the group of f by the shape of its text.
func (g *groups) byShape(f *nixie.Failure, key groupKey, body *fields) *group {
	var room [256]byte
	shape := appendShape(room[:0], f, body)
	at := &g.shapes[maphash.Bytes(g.seed, shape)%groupsKept]
	has := at.Load()
	if has == nil || has.groupKey != key || has.shape != string(shape) {
		has = &group{groupKey: key, shape: string(shape)}
		has.label, has.fingerprint = signature(f, has.shape, key.of)
		at.Store(has)
	}
	return has
}
