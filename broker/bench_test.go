package broker

import (
	"strconv"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// BenchmarkLetter makes the record of a letter, of a retry and of a redrive.
func BenchmarkLetter(b *testing.B) {
	s := &Source{c: Config{Letters: DefaultLetters}}
	now := time.UnixMilli(1_700_000_000_000)
	i := &item{record: &Record{Channel: "orders", Partition: 3, Offset: 1_234_567, Key: []byte("key"), Value: make([]byte, 200),
		Timestamp: now, ID: [16]byte{1}}}
	i.fill(&newDelivery{}, &Features{System: "kafka"}, "", now)
	i.delivery.Attempts = 1
	v := &openSettlement{item: i, st: &nixie.Settlement{Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CausePermanent},
		Failure: &nixie.Failure{
			Reason: nixie.ReasonHandler, Class: nixie.ClassPermanent, Type: "*errors.errorString", Text: "it fails", FailedAt: now,
			Node: "node",
		}}}
	letter := s.letterRecord(v)
	b.Run("publish", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			letter = s.letterRecord(v)
		}
	})
	b.Run("retry", func(b *testing.B) {
		b.ReportAllocs()
		waits := &Source{c: Config{Letters: DefaultLetters},
			features: Features{Stages: []Stage{{Channel: "{source}.retry.1m", Delay: time.Minute}}}}
		again := &openSettlement{item: i, st: &nixie.Settlement{Verb: nixie.Retry, Delay: time.Second, Failure: v.st.Failure}}
		for b.Loop() {
			waits.retryRecord(again, now)
		}
	})
	b.Run("redrive", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(len(letter.Headers)), "headers")
		record := Record{Channel: letter.Channel, Offset: 1, Key: letter.Key, Value: letter.Value, Headers: letter.Headers, Timestamp: now}
		for n := 0; b.Loop(); n++ {
			back := FromRecord(&record)
			if p := back.Redriven(now); len(p.Headers) < 6 || strconv.Itoa(n) == "" {
				b.Fatal(p)
			}
		}
	})
}
