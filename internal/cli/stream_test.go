package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// makeStreams writes a store with a strict queue "ledger" of four streams, whose
// messages are called customer-7/1, customer-7/2 and so on: the head of customer-7
// is dead, that of customer-8 waits an hour for a retry, and the others are ready.
func makeStreams(ts *testscript.TestScript, _ bool, _ []string) {
	now := noon.Add(-time.Hour)
	ctx := context.Background()
	st, err := app.OpenStore(ts.Getenv("NIXIE_STORE"), app.Options{Clock: func() time.Time { return now }, Owner: "worker-1"})
	ts.Check(err)
	ts.Check(store.Configure(ctx, st, "ledger", nixie.QueueSettings{Order: nixie.OrderStrict}, "bob@desk", "order matters"))
	number := 0
	for _, customer := range []int{7, 8, 9, 10} {
		for n := 1; n <= 3; n++ {
			number++
			m := nixie.Message{Queue: "ledger", Stream: fmt.Sprint("customer-", customer), Key: fmt.Sprintf("customer-%d/%d", customer, n),
				Body: []byte("{}")}
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
			Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "handler: account is locked",
			Fingerprint: "v3-0123456789abcdef", Redrivable: true, Rule: "max attempts",
		}},
		{Delivery: ds[1], Verb: nixie.Retry, Delay: 2 * time.Hour, Failure: failure(ds[1], nixie.Retry)},
		{Delivery: ds[2], Verb: nixie.Release},
		{Delivery: ds[3], Verb: nixie.Release},
	})...))
	ts.Check(st.Close())
}

// What is told to do about a dead head works as it is told.
func TestStreamNextOfADeadHead(t *testing.T) {
	g := &globals{}
	s := &office.StreamView{Queue: "q", Stream: "s", State: store.StreamBlocked, Letter: nixie.ID{}.String(), Followers: 1}
	for _, c := range []struct {
		name   string
		letter nixie.Letter
		want   string
	}{
		{"redrivable", nixie.Letter{Status: nixie.StatusOpen, Redrivable: true}, "dlq redrive " + s.Letter + " --reason"},
		{"not redrivable", nixie.Letter{Status: nixie.StatusOpen}, "dlq redrive " + s.Letter + " --force --reason"},
		{"for review", nixie.Letter{Status: nixie.StatusReview, Redrivable: true, NeedsReview: true}, "dlq redrive " + s.Letter +
			" --force --reason"},
		{"in quarantine", nixie.Letter{Status: nixie.StatusQuarantined, Redrivable: true}, "dlq requalify " + s.Letter + " --reason"},
	} {
		var told []string
		for _, next := range g.streamNext(s, &c.letter) {
			told = append(told, next.command)
		}
		if len(told) != 3 || !strings.HasPrefix(told[1], "nixie "+c.want) {
			t.Errorf("%s: told %q, want %q", c.name, told, c.want)
		}
	}
}
