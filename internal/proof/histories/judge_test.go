package histories

import (
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// A claim that answers after its leases are over may leave out a message that others have
// moved on; one that answers in time may not.
func TestClaimThatOutlastsItsLeases(t *testing.T) {
	for name, tc := range map[string]struct {
		lasted time.Duration
		ok     bool
	}{
		"its leases are over":  {lasted: leaseTime, ok: true},
		"its leases are there": {lasted: leaseTime - time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			id, start := nameOf(1, 1), time.Unix(0, 0)
			call := Call{Kind: Claim, Queue: plain, Max: 2, Lease: leaseTime}
			second := Loan{
				ID: id, Number: 2, Deliveries: 2, Crashes: 1, Generation: 1, Owner: "b",
				Abandoned: true, AbandonedBy: "a", Until: start.Add(2 * leaseTime),
			}
			r := &record{all: []*event{
				{owner: "a", call: Call{Kind: Enqueue, Queue: plain, Messages: []Sent{{ID: id}}},
					answer: Answer{Receipts: []nixie.Receipt{{ID: id}}}, from: 1, to: 2, early: start, late: start},
				{owner: "a", call: call, from: 3, to: 6, early: start, late: start.Add(tc.lasted)},
				{owner: "b", client: 1, call: call, answer: Answer{Loans: []Loan{second}}, from: 4, to: 5, early: start.Add(tc.lasted),
					late: start.Add(leaseTime)},
				{owner: "b", client: 1, call: Call{Kind: Settle, Verb: nixie.Complete, Loans: []Loan{second}},
					answer: Answer{Parts: []nixie.Code{""}}, from: 7, to: 8, early: start.Add(leaseTime), late: start.Add(leaseTime)},
			}}
			last := Answer{Found: []Found{{ID: id, State: nixie.Succeeded}}}
			v := judge(r, map[nixie.ID]sending{id: {queue: plain}}, last, nil, true, false)
			if (len(v.problems) == 0) != tc.ok {
				t.Errorf("problems: %q", v.problems)
			}
		})
	}
}
