package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// Middleware is a function from handler to handler. It needs no registration, and it runs in the
// order of the calls.
func Example_middleware() {
	told := func(next nixie.Handler) nixie.Handler {
		return nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
			err := next.Handle(ctx, d)
			fmt.Println(d.Key, "attempt", d.Attempts, "ended with", err)
			return err
		})
	}
	onlyFor := func(customer string, next nixie.Handler) nixie.Handler {
		return nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
			if d.Header("customer") != customer {
				return nixie.Verdict(nixie.Release, errors.New("not ours"))
			}
			return next.Handle(ctx, d)
		})
	}
	send := nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error { return nil })
	handler := told(onlyFor("Ada", send))

	for _, customer := range []string{"Ada", "Grace"} {
		d := &nixie.Delivery{Message: nixie.Message{
			Key: "invoice for " + customer, Attempts: 1, Headers: []nixie.Header{{Name: "customer", Value: customer}},
		}}
		if err := handler.Handle(context.Background(), d); err != nil {
			fmt.Println("what the worker sees:", nixie.OutcomeOf(err).Verb)
		}
	}
	// Output:
	// invoice for Ada attempt 1 ended with <nil>
	// invoice for Grace attempt 1 ended with not ours
	// what the worker sees: release
}

// For a short disturbance a retry by policy costs too much, so the handler runs again under the
// same claim.
func ExampleRetryInClaim() {
	p, err := policy.New(policy.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	runs := 0
	flaky := nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error {
		if runs++; runs < 3 {
			return errors.New("connection reset")
		}
		return nil
	})
	limits := policy.InClaim{MaxAttempts: 5, MaxTime: time.Minute, Backoff: policy.Backoff{Base: -1}}
	handler, err := worker.RetryInClaim(flaky, p, limits, time.Now)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = handler.Handle(context.Background(), &nixie.Delivery{Message: nixie.Message{Generation: 1, Attempts: 1}})
	fmt.Println(err, "after", runs, "runs of attempt 1")
	// Output: <nil> after 3 runs of attempt 1
}
