package redis

import (
	"context"
	"strconv"
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
	before := f.serverTime(b)
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
	all := float64(b.N) * mostRecords
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/all, "ns/record")
	b.ReportMetric((f.serverTime(b)-before)*1e9/all, "server-ns/record")
}

// serverTime returns the processor time of the server in seconds.
func (f *fixture) serverTime(t testing.TB) (sum float64) {
	t.Helper()
	info := f.client.Info(context.WithoutCancel(t.Context()), "cpu").Val()
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		s, err := strconv.ParseFloat(infoField(info, name), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += s
	}
	return sum
}
