//go:build unix

package kafka

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/worker"
)

// BenchmarkConsume measures how fast records of 100 bytes are consumed and committed. It compares a
// minimal poll loop of the client, which commits after each poll, with a worker on the driver.
func BenchmarkConsume(b *testing.B) {
	b.Run("raw", func(b *testing.B) { consume(b, rawLoop) })
	b.Run("nixie", func(b *testing.B) { consume(b, workerLoop) })
}

func consume(b *testing.B, loop func(*testing.B, *fixture)) {
	server.Need(b)
	cluster := actual(b)
	value := make([]byte, 100)
	for range b.N {
		cluster.client.Produce(b.Context(), &kgo.Record{Topic: cluster.source, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := cluster.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := processor(b)
	loop(b, cluster)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(processor(b)-before)/float64(b.N), "cpu-ns/op")
}

// processor returns the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func rawLoop(b *testing.B, cluster *fixture) {
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.seeds...), kgo.ConsumerGroup(cluster.source), kgo.ConsumeTopics(cluster.source),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for n := 0; n < b.N; {
		fetches := client.PollFetches(b.Context())
		if err := fetches.Err(); err != nil {
			b.Fatal(err)
		}
		n += fetches.NumRecords()
		if err := client.CommitUncommittedOffsets(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func workerLoop(b *testing.B, cluster *fixture) {
	d, err := Open(Config{Seeds: cluster.seeds, Group: cluster.source, Topics: []string{cluster.source}})
	if err != nil {
		b.Fatal(err)
	}
	source, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var settled atomic.Int64
	w, err := worker.New(worker.Config{
		Source: source, Prefetch: 10_000, Handler: nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return nil }),
		Observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) {
			if settled.Add(int64(len(sts))) >= int64(b.N) {
				stop()
			}
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
	if err := d.Close(context.WithoutCancel(ctx)); err != nil {
		b.Fatal(err)
	}
}
