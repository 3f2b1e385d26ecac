package redis

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie/broker"
)

// BenchmarkMailbox sends, leases and acknowledges records in calls of a thousand.
func BenchmarkMailbox(b *testing.B) {
	f := actual(b)
	d := f.open(b, Config{})
	records := make([]broker.Publication, mostRecords)
	for i := range records {
		records[i] = broker.Publication{Channel: f.at.Mailbox, Key: []byte("key"), Value: make([]byte, 100)}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range f.sent.Publish(b.Context(), records)() {
			if err != nil {
				b.Fatal(err)
			}
		}
		got, err := d.Receive(b.Context(), broker.Want{Max: mostRecords, Lease: time.Minute})
		if err != nil || len(got) != mostRecords {
			b.Fatal(len(got), err)
		}
		list := make([]*broker.Record, len(got))
		for i := range got {
			list[i] = &got[i]
		}
		for _, err := range d.Ack(b.Context(), list) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/mostRecords, "ns/record")
	b.Log(f.client.Info(b.Context(), "commandstats").Val())
}
