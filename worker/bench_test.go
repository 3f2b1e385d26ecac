package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// prepared is a source that hands out prepared deliveries in batches. It ends the run when all are
// settled.
type prepared struct {
	ds      []*nixie.Delivery
	batch   int
	next    int
	settled atomic.Int64
	total   int64
	end     context.CancelFunc
	errs    []error
}

func (p *prepared) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	n := min(p.batch, want.Max, int(p.total)-p.next)
	if n == 0 {
		<-ctx.Done()
		return nil, nil
	}
	from := p.next % (len(p.ds) - p.batch)
	p.next += n
	return p.ds[from : from+n], nil
}

func (p *prepared) Extend(_ context.Context, ds []*nixie.Delivery, _ time.Duration) []error {
	return make([]error, len(ds))
}

func (p *prepared) Settle(_ context.Context, sts []nixie.Settlement) []error {
	if p.settled.Add(int64(len(sts))) >= p.total {
		p.end()
	}
	return p.errs[:len(sts)]
}

// BenchmarkLoop measures the loop alone. The source is in memory, the handler does nothing, and the
// bodies have 100 bytes, with or without a hash to check.
func BenchmarkLoop(b *testing.B) {
	for _, hashed := range []bool{false, true} {
		for _, concurrency := range []int{2, 16} {
			b.Run(fmt.Sprintf("hash=%v/concurrency=%d", hashed, concurrency), func(b *testing.B) {
				benchLoop(b, concurrency, hashed, policy.Config{}, func(context.Context, *nixie.Delivery) error { return nil })
			})
		}
	}
}

// BenchmarkFailures measures the loop when every message fails. The texts of the failures are equal
// or different, and the messages die or are retried.
func BenchmarkFailures(b *testing.B) {
	var n atomic.Int64
	for name, fail := range map[string]nixie.HandlerFunc{
		"same":     func(context.Context, *nixie.Delivery) error { return errRefused },
		"numbered": func(context.Context, *nixie.Delivery) error { return fmt.Errorf("order %d: %w", n.Add(1), errRefused) },
	} {
		for attempts, end := range map[int]string{1: "die", 5: "retry"} {
			b.Run(name+"/"+end, func(b *testing.B) { benchLoop(b, 2, false, policy.Config{MaxAttempts: attempts}, fail) })
		}
	}
}

var errRefused = errors.New("connection to 10.0.0.7:5432 was refused")

func benchLoop(b *testing.B, concurrency int, hashed bool, rules policy.Config, handler nixie.HandlerFunc) {
	const batch = 1000
	src := &prepared{batch: batch, total: int64(b.N), errs: make([]error, nixie.MaxBatch)}
	body := make([]byte, 100)
	for range 20 * batch {
		d := &nixie.Delivery{Message: nixie.Message{Body: body, Attempts: 1, Deliveries: 1, Generation: 1}}
		if hashed {
			d.Hash = nixie.HashBody(body)
		}
		src.ds = append(src.ds, d)
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	src.end = end
	p, err := policy.New(rules)
	if err != nil {
		b.Fatal(err)
	}
	w, err := worker.New(worker.Config{
		Source:      src,
		Policy:      p,
		Handler:     handler,
		Concurrency: concurrency,
		Prefetch:    4 * batch,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/msg")
}
