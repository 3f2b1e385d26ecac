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

// BenchmarkSignature measures naming the group of a failure without the memory of earlier ones.
func BenchmarkSignature(b *testing.B) {
	const stack = "goroutine 7 [running]:\nruntime/debug.Stack()\n\ta/stack.go:26 +0x5e\n" +
		"panic({0x1, 0x2})\n\truntime/panic.go:860 +0x13a\n" +
		"main.(*Shop).Pay(0xc1, {0x2})\n\tshop/main.go:18 +0x41\nmain.work()\n\tshop/main.go:9 +0x2\nmain.main()\n\tshop/main.go:3 +0x2\n"
	for _, c := range []struct{ name, text, stack string }{
		{"words", "the card was declined by the bank: insufficient funds", ""},
		{"numbers", "order 4711 of user 17: dial tcp 10.0.0.7:5432: connect: connection refused", ""},
		{"quotes", `open "/data/a b.json" for 'bob': https://pay.example.com/v1 said 503 after 1m30s`, ""},
		{"stack", "runtime error: index out of range [5] with length 3", stack},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := &nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Text: c.text, Stack: c.stack}
			b.ReportAllocs()
			for b.Loop() {
				policy.Signature(f)
			}
		})
	}
}
