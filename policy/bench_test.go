package policy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// BenchmarkDeath measures the work for a failure that ends a message: its record, its settlement
// and its group.
func BenchmarkDeath(b *testing.B) {
	p, err := policy.New(policy.Config{MaxAttempts: 1})
	if err != nil {
		b.Fatal(err)
	}
	d := &nixie.Delivery{Message: nixie.Message{Type: "task", Attempts: 1, Deliveries: 1, Generation: 1}}
	at := time.Now()
	for _, c := range []struct {
		name string
		err  func(i int) error
	}{
		{"same", func(int) error { return errSame }},
		{"wrapped", func(int) error { return fmt.Errorf("charge the card: %w", errSame) }},
		{"numbered", func(i int) error { return fmt.Errorf("order %d: %w", i, errSame) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f := p.Diagnose(d, c.err(i), policy.Attempt{StartedAt: at, FailedAt: at, Worker: "worker", Node: "node"})
				if p.Decide(d, f, at).Burial == nil {
					b.Fatal("it was not buried")
				}
			}
		})
	}
}

var errSame = errors.New("connection to 10.0.0.7:5432 was refused")
