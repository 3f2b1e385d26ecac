package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// BenchmarkRedrive compares a redrive of letters with what the client alone produces, on a real
// broker: go test -run '^$' -bench Redrive -benchtime 3x ./broker/kafka
func BenchmarkRedrive(b *testing.B) {
	const letters = 100_000
	fixture := actual(b)
	list := make([]*kgo.Record, letters)
	for i := range list {
		list[i] = &kgo.Record{Topic: fixture.letters, Key: fmt.Append(nil, "key ", i%1000), Value: fmt.Appendf(nil, "%0200d", i),
			Headers: []kgo.RecordHeader{
				{Key: "theirs", Value: []byte("v")}, {Key: broker.HeaderTopic, Value: []byte(fixture.source)},
				{Key: broker.HeaderFailureReason, Value: []byte("permanent_error")},
			}}
	}
	if err := fixture.client.ProduceSync(limited(b), list...).FirstErr(); err != nil {
		b.Fatal(err)
	}
	raw, moved := time.Duration(0), time.Duration(0)
	for n := range b.N {
		for _, r := range list {
			r.Topic = fixture.source
		}
		start := time.Now()
		if err := fixture.client.ProduceSync(limited(b), list...).FirstErr(); err != nil {
			b.Fatal(err)
		}
		raw += time.Since(start)
		start = time.Now()
		got, err := fixture.move(b, fmt.Sprint(fixture.source, "-bench", n), func(m *redrive.Mover) { m.Batch = redrive.MaxMove })
		if err != nil || got.Redriven != letters {
			b.Fatal(got, err)
		}
		moved += time.Since(start)
	}
	b.ReportMetric(float64(letters*b.N)/raw.Seconds(), "raw/s")
	b.ReportMetric(float64(letters*b.N)/moved.Seconds(), "redriven/s")
	b.ReportMetric(100*raw.Seconds()/moved.Seconds(), "%")
}
