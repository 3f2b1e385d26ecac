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
	var room [512]byte
	var short [36]byte // a number, or an ID
	link := append(room[:0], before[:]...)
	link = appendField(link, e.Queue)
	link = appendField(link, strconv.AppendInt(short[:0], e.Number, 10))
	link = appendField(link, strconv.AppendInt(short[:0], e.At.UnixNano(), 10))
	link = appendField(link, e.Actor)
	link = appendField(link, e.Event)
	link = appendField(link, e.Subject.Append(short[:0]))
	link = appendField(link, e.Reason)
	link = appendField(link, e.Operation.Append(short[:0]))
	return sha256.Sum256(link)
}

func appendField[T ~string | []byte](link []byte, field T) []byte {
	return append(binary.BigEndian.AppendUint64(link, uint64(len(field))), field...)
}
