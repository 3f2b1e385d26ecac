package sqlite_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/worker"
)

type parcel struct {
	I int    `json:"i"`
	P string `json:"p"`
}

var parcels = nixie.NewType[parcel]("parcel")

// BenchmarkEnqueue32 measures 32 producers that enqueue one by one.
func BenchmarkEnqueue32(b *testing.B) {
	s := open(b, "", sqlite.Options{})
	pad := strings.Repeat("x", 180)
	var wg sync.WaitGroup
	var next atomic.Int64
	b.ResetTimer()
	for range 32 {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				if _, err := parcels.Enqueue(context.Background(), s, parcel{i, pad}, nixie.Queue("q")); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func benchWorker(b *testing.B, fails int, conf policy.Config) {
	s := open(b, "", sqlite.Options{})
	pad := strings.Repeat("x", 180)
	ms := make([]nixie.Message, 0, 1000)
	for i := range b.N {
		m, err := parcels.Message(parcel{i, pad}, nixie.Queue("q"))
		if err != nil {
			b.Fatal(err)
		}
		if ms = append(ms, m); len(ms) == 1000 || i == b.N-1 {
			if _, err := s.Enqueue(context.Background(), ms...); err != nil {
				b.Fatal(err)
			}
			ms = ms[:0]
		}
	}
	p, err := policy.New(conf)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(b.N))
	w, err := worker.New(worker.Config{Source: store.NewSource(s, "q"), Policy: p, Concurrency: 16,
		Observer: &nixie.Observer{Settled: func(_ string, sts []nixie.Settlement, _ []error) {
			n := int64(0)
			for i := range sts {
				if sts[i].Verb != nixie.Retry {
					n++
				}
			}
			if left.Add(-n) == 0 {
				stop()
			}
		}},
		Handler: nixie.Routes(parcels.Handle(func(_ context.Context, j *nixie.Job[parcel]) error {
			if j.Attempts <= fails {
				return errAfter
			}
			return nil
		}))})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func BenchmarkWorkerDrain(b *testing.B) { benchWorker(b, 0, policy.Config{}) }
func BenchmarkWorkerFailOnce(b *testing.B) {
	benchWorker(b, 1, policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: 1}})
}
func BenchmarkWorkerAllDie(b *testing.B) { benchWorker(b, 9, policy.Config{MaxAttempts: 1}) }
