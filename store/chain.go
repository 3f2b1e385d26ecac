package store

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/nixie-go/nixie"
)

// Sum is the hash that the entry has to have when before is the hash of the
// entry with the number before its own: zero for the first. It is a SHA-256
// over before and the fields in the order of the struct, texts preceded by
// their length and moments as nanoseconds since 1970, so that anybody who has
// the entries can check the chain.
func (e *AuditEntry) Sum(before nixie.Hash) nixie.Hash {
	link := append([]byte(nil), before[:]...)
	text := func(s string) {
		link = binary.BigEndian.AppendUint64(link, uint64(len(s)))
		link = append(link, s...)
	}
	text(e.Queue)
	link = binary.BigEndian.AppendUint64(link, uint64(e.Number))
	link = binary.BigEndian.AppendUint64(link, uint64(e.At.UnixNano()))
	text(e.Actor)
	text(string(e.Event))
	link = append(link, e.Subject[:]...)
	text(e.Reason)
	return sha256.Sum256(link)
}
