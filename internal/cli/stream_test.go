package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// makeStreams writes a store with a strict queue "ledger" of four streams, whose
// messages are called customer-7/1, customer-7/2 and so on: the head of customer-7
// is dead, that of customer-8 waits an hour for a retry, and the others are ready.
func makeStreams(ts *testscript.TestScript, _ bool, _ []string) {
	now := noon.Add(-time.Hour)
	ctx := context.Background()
	st, err := sqlite.Open(ts.MkAbs("s.db"), sqlite.Options{Clock: func() time.Time { return now }, Owner: "worker-1", Reserve: -1})
	ts.Check(err)
	ts.Check(st.Configure(ctx, "ledger", nixie.QueueSettings{Order: nixie.OrderStrict}, "bob@desk", "order matters"))
	number := 0
	for _, customer := range []int{7, 8, 9, 10} {
		for n := 1; n <= 3; n++ {
			number++
			m := nixie.Message{Queue: "ledger", Stream: fmt.Sprint("customer-", customer), Key: fmt.Sprintf("customer-%d/%d", customer, n), Body: []byte("{}")}
			m.ID, err = nixie.ParseID(fmt.Sprintf("01970000-0000-7000-8000-%012d", number))
			ts.Check(err)
			_, err = st.Enqueue(ctx, m)
			ts.Check(err)
		}
	}
	ds, err := st.Claim(ctx, "ledger", nixie.Want{Max: 4, Lease: 2 * time.Hour})
	ts.Check(err)
	failure := func(d *nixie.Delivery, verb nixie.Verb) *nixie.Failure {
		return &nixie.Failure{
			Generation: 1, Attempt: d.Attempts, StartedAt: now, FailedAt: now, Took: time.Second, Class: nixie.ClassUnknown,
			Reason: nixie.ReasonHandler, Type: "*errors.errorString", Text: "account is locked", Worker: "worker-1", Decision: verb,
		}
	}
	ts.Check(errors.Join(st.Settle(ctx, []nixie.Settlement{
		{Delivery: ds[0], Verb: nixie.Bury, Failure: failure(ds[0], nixie.Bury), Burial: &nixie.Burial{
			Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "handler: account is locked", Fingerprint: "v1-0123456789abcdef", Redrivable: true, Rule: "max attempts",
		}},
		{Delivery: ds[1], Verb: nixie.Retry, Delay: 2 * time.Hour, Failure: failure(ds[1], nixie.Retry)},
		{Delivery: ds[2], Verb: nixie.Release},
		{Delivery: ds[3], Verb: nixie.Release},
	})...))
	ts.Check(st.Close())
}
