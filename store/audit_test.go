package store_test

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// plainSum computes the sum as the comment of Sum describes it.
func plainSum(e *store.AuditEntry, before nixie.Hash) nixie.Hash {
	link := append([]byte(nil), before[:]...)
	for _, field := range [...]string{
		e.Queue, strconv.FormatInt(e.Number, 10), strconv.FormatInt(e.At.UnixNano(), 10),
		e.Actor, string(e.Event), e.Subject.String(), e.Reason, e.Operation.String(),
	} {
		link = append(binary.BigEndian.AppendUint64(link, uint64(len(field))), field...)
	}
	return sha256.Sum256(link)
}

func FuzzSum(f *testing.F) {
	f.Add("q", int64(1), int64(1_800_000_000_000_000_000), "nixie", "bury", []byte("0123456789abcdef"), "reason:handler", []byte{})
	f.Add("", int64(-1), int64(-1), "", "", []byte{}, string(make([]byte, 2000)), []byte("fedcba9876543210"))
	f.Fuzz(func(t *testing.T, queue string, number, at int64, actor, event string, subject []byte, reason string, operation []byte) {
		e := &store.AuditEntry{Queue: queue, Number: number, At: time.Unix(0, at), Actor: actor, Event: store.Event(event), Reason: reason}
		copy(e.Subject[:], subject)
		copy(e.Operation[:], operation)
		before := nixie.HashBody(subject)
		if got, want := e.Sum(before), plainSum(e, before); got != want {
			t.Fatalf("%+v: %x, want %x", e, got, want)
		}
	})
}

// BenchmarkSum computes the hash of an audit entry for a letter.
func BenchmarkSum(b *testing.B) {
	e := &store.AuditEntry{
		Queue: "billing", Number: 1_234_567, At: time.Unix(1_800_000_000, 1), Actor: "nixie", Event: store.OnBury, Subject: nixie.ID{1},
		Reason: "reason:handler",
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Hash = e.Sum(e.Hash)
	}
}
