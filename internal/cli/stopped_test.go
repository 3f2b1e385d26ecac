package cli

import (
	"context"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// makeStopped freezes an operation and is stopped before the first letter:
// stopped EVENT FILTER REASON. OPERATION is its ID.
func makeStopped(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	st, err := app.OpenStore(ts.Getenv("NIXIE_STORE"), app.Options{Clock: func() time.Time { return noon }})
	ts.Check(err)
	f, err := filter.Parse(args[1], noon)
	ts.Check(err)
	op, err := st.Plan(ctx, store.Operation{Event: store.Event(args[0]), Actor: ts.Getenv("NIXIE_ACTOR"), Reason: args[2],
		Filter: filter.Text(f), Statuses: f.Statuses}, f, 0)
	ts.Check(err)
	ts.Check(st.Close())
	ts.Setenv("OPERATION", op.ID.String())
}

// makeExhausted redrives the letter of each key in queue orders until it has died
// too often: exhausted KEY…
func makeExhausted(ts *testscript.TestScript, _ bool, keys []string) {
	ctx := context.Background()
	now := noon.Add(-15 * time.Minute)
	st, err := app.OpenStore(ts.Getenv("NIXIE_STORE"), app.Options{Clock: func() time.Time { return now }, Owner: "worker-1"})
	ts.Check(err)
	down := fixtureLetters()[1]
	for _, key := range keys {
		page, _, err := st.Letters(ctx, nixie.Filter{Keys: []string{key}, Queues: []string{"orders"}}, store.Page{Limit: 1})
		ts.Check(err)
		for i := range policy.DefaultMaxRedrives {
			ts.Check(st.Resolve(ctx, []store.Resolution{{Letter: page[0].ID, Event: store.OnRedrive, Actor: "bob@desk", Reason: "once more",
				Force: true}})[0])
			now = now.Add(time.Second)
			ds, err := st.Claim(ctx, "orders", nixie.Want{Max: 1})
			ts.Check(err)
			f, burial := down.failures[0], down.burial
			f.Generation, f.Attempt, f.Decision, f.StartedAt, f.FailedAt = ds[0].Generation, 1, nixie.Bury, now, now
			if i == policy.DefaultMaxRedrives-1 {
				burial.Status = nixie.StatusQuarantined
			}
			ts.Check(st.Settle(ctx, []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Bury, Failure: &f, Burial: &burial}})[0])
			now = now.Add(time.Minute)
		}
	}
	ts.Check(st.Close())
}
