package kafka

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
)

// doneSet holds the finished offsets of a partition: all below base, and ranges above it. It is
// stored as a committed offset and its metadata.
type doneSet struct {
	base   int64
	ranges []doneRange // in order, with gaps between them and after base
}

// doneRange holds the offsets from from up to, but not including, to.
type doneRange struct{ from, to int64 }

// has reports whether an offset is finished.
func (n *doneSet) has(offset int64) bool {
	if offset < n.base {
		return true
	}
	at, found := slices.BinarySearchFunc(n.ranges, offset, func(s doneRange, o int64) int { return compareInt64(s.from, o) })
	return found || at > 0 && offset < n.ranges[at-1].to
}

func compareInt64(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// add adds a range.
func (n *doneSet) add(s doneRange) {
	if s.from < n.base {
		s.from = n.base
	}
	if s.from >= s.to {
		return
	}
	first, _ := slices.BinarySearchFunc(n.ranges, s.from, func(r doneRange, o int64) int { return compareInt64(r.to, o) })
	last := first
	for last < len(n.ranges) && n.ranges[last].from <= s.to {
		s.from, s.to = min(s.from, n.ranges[last].from), max(s.to, n.ranges[last].to)
		last++
	}
	if s.from == n.base {
		n.base, n.ranges = s.to, slices.Delete(n.ranges, 0, last)
		return
	}
	n.ranges = slices.Replace(n.ranges, first, last, s)
}

// merge adds the offsets of another set.
func (n *doneSet) merge(others doneSet) {
	n.raiseBase(others.base)
	for _, s := range others.ranges {
		n.add(s)
	}
}

// raiseBase adds all offsets below base.
func (n *doneSet) raiseBase(base int64) {
	if base > n.base {
		n.add(doneRange{n.base, base})
	}
}

// donePrefix begins the metadata of a doneSet.
const donePrefix = "nixie done="

// MaxMetadata is the most bytes that brokers store with a committed offset, unless
// offset.metadata.max.bytes says otherwise.
const MaxMetadata = 4096

// metadata encodes the gaps and lengths of the ranges.
func (n *doneSet) metadata() string {
	if len(n.ranges) == 0 {
		return ""
	}
	var raw []byte
	at := n.base
	for _, s := range n.ranges {
		raw = binary.AppendUvarint(raw, uint64(s.from-at))
		raw = binary.AppendUvarint(raw, uint64(s.to-s.from))
		at = s.to
	}
	return donePrefix + base64.RawStdEncoding.EncodeToString(raw)
}

// parseDoneSet reads what metadata wrote. It ignores a part that it cannot read: those records come
// again.
func parseDoneSet(base int64, metadata string) doneSet {
	n := doneSet{base: max(base, 0)}
	text, ok := strings.CutPrefix(metadata, donePrefix)
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
		n.add(doneRange{at + int64(gap), at + int64(gap+length)})
		at += int64(gap + length)
		raw = raw[a+b:]
	}
	return n
}

// trim drops the last ranges if the metadata is too long, and reports whether it did: those records
// come again.
func (n *doneSet) trim() (dropped bool) {
	for len(n.metadata()) > MaxMetadata {
		n.ranges, dropped = n.ranges[:len(n.ranges)*9/10], true
	}
	return dropped
}

const (
	maxOffset = 1 << 60
	// bytesPerOffset is the most that one more offset adds to the metadata while offsets stay below
	// 2^35: two numbers of five bytes and one byte, in base64.
	bytesPerOffset = 9
)

// capacity returns how many more offsets fit, wherever they lie.
func (n *doneSet) capacity() int {
	return (MaxMetadata - len(n.metadata()) - len(donePrefix)) / bytesPerOffset
}
