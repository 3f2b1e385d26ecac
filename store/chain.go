package store

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/nixie-go/nixie"
)

// Sum is the hash that the entry has to have when before is the hash of the
// entry with the number before its own, zero for the first. It is the SHA-256
// of before and then each field in the order of the struct as text, numbers and
// nanoseconds since 1970 in decimal, preceded by its length as eight bytes, so
// that anybody who has the entries can check the chain.
func (e *AuditEntry) Sum(before nixie.Hash) nixie.Hash {
	link := append([]byte(nil), before[:]...)
	for _, field := range [...]string{
		e.Queue, strconv.FormatInt(e.Number, 10), strconv.FormatInt(e.At.UnixNano(), 10),
		e.Actor, string(e.Event), e.Subject.String(), e.Reason,
	} {
		link = binary.BigEndian.AppendUint64(link, uint64(len(field)))
		link = append(link, field...)
	}
	return sha256.Sum256(link)
}
