package kafka

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
)

// notes are the offsets of a partition that are done with: all below base, and runs
// of others beyond it. They are kept as a committed offset and its metadata.
type notes struct {
	base int64
	runs []span // in order, apart from each other and from base
}

// span is the offsets from from to to, without to.
type span struct{ from, to int64 }

// has reports whether an offset is done with.
func (n *notes) has(offset int64) bool {
	if offset < n.base {
		return true
	}
	at, found := slices.BinarySearchFunc(n.runs, offset, func(s span, o int64) int { return compare(s.from, o) })
	return found || at > 0 && offset < n.runs[at-1].to
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// add notes a span.
func (n *notes) add(s span) {
	if s.from < n.base {
		s.from = n.base
	}
	if s.from >= s.to {
		return
	}
	first, _ := slices.BinarySearchFunc(n.runs, s.from, func(r span, o int64) int { return compare(r.to, o) })
	last := first
	for last < len(n.runs) && n.runs[last].from <= s.to {
		s.from, s.to = min(s.from, n.runs[last].from), max(s.to, n.runs[last].to)
		last++
	}
	if s.from == n.base {
		n.base, n.runs = s.to, slices.Delete(n.runs, 0, last)
		return
	}
	n.runs = slices.Replace(n.runs, first, last, s)
}

// join adds what others have noted.
func (n *notes) join(others notes) {
	n.raise(others.base)
	for _, s := range others.runs {
		n.add(s)
	}
}

// raise notes all below an offset.
func (n *notes) raise(base int64) {
	if base > n.base {
		n.add(span{n.base, base})
	}
}

// noted begins the metadata of notes.
const noted = "nixie done="

// MaxNotes is how many bytes brokers take with a committed offset, unless their
// offset.metadata.max.bytes says otherwise.
const MaxMetadata = 4096

// metadata is what is kept beside base: the gaps and lengths of the runs.
func (n *notes) metadata() string {
	if len(n.runs) == 0 {
		return ""
	}
	var raw []byte
	at := n.base
	for _, s := range n.runs {
		raw = binary.AppendUvarint(raw, uint64(s.from-at))
		raw = binary.AppendUvarint(raw, uint64(s.to-s.from))
		at = s.to
	}
	return noted + base64.RawStdEncoding.EncodeToString(raw)
}

// readNotes reads what metadata wrote. Of what it cannot read it says nothing: those
// records come again.
func readNotes(base int64, metadata string) notes {
	n := notes{base: max(base, 0)}
	text, ok := strings.CutPrefix(metadata, noted)
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil {
		return n
	}
	at := n.base
	for len(raw) > 0 {
		gap, a := binary.Uvarint(raw)
		if a <= 0 {
			return n
		}
		length, b := binary.Uvarint(raw[a:])
		if b <= 0 || gap >= maxOffset || length == 0 || length >= maxOffset || at >= maxOffset {
			return n
		}
		n.add(span{at + int64(gap), at + int64(gap+length)})
		at += int64(gap + length)
		raw = raw[a+b:]
	}
	return n
}

// fit drops the last runs for which there is no room, and reports whether there were
// any: those records come again.
func (n *notes) fit() (dropped bool) {
	for len(n.metadata()) > MaxMetadata {
		n.runs, dropped = n.runs[:len(n.runs)*9/10], true
	}
	return dropped
}

const (
	maxOffset = 1 << 60
	// costOfOne is the most that one more offset adds to the metadata while offsets
	// stay below 2^35: two runs of five and one bytes, as text.
	costOfOne = 9
)

// room is how many offsets may still be noted, however they lie.
func (n *notes) room() int { return (MaxMetadata - len(n.metadata()) - len(noted)) / costOfOne }
