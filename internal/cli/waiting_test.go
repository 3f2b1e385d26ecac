package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/store"
)

// tried is a message of the queue mail with what it failed of, one attempt each.
type tried struct {
	key, queue, stream string
	reasons            []nixie.Reason
	next               time.Duration // from noon
}

func times(n int, r nixie.Reason) []nixie.Reason {
	var list []nixie.Reason
	for range n {
		list = append(list, r)
	}
	return list
}

func triedMessages() []tried {
	return []tried{
		{"m-1", "mail", "", times(12, nixie.ReasonTimeout), 10 * time.Minute},
		{"m-2", "mail", "", times(3, nixie.ReasonDependency), 2 * time.Hour},
		{"m-3", "mail", "", []nixie.Reason{nixie.ReasonTimeout, nixie.ReasonDependency, nixie.ReasonTimeout, nixie.ReasonHandler},
			30 * time.Second},
		{"m-4", "mail", "", times(1, nixie.ReasonHandler), time.Minute},
		{"l-1", "lines", "customer-7", times(2, nixie.ReasonValidation), time.Hour},
	}
}

// makeWaiting makes a store in which much waits: retries, later ones, new ones,
// and a stream whose head holds up others.
func makeWaiting(ts *testscript.TestScript, _ bool, _ []string) {
	ctx := context.Background()
	now := noon.Add(-3 * time.Hour)
	st, err := app.OpenStore(ts.Getenv("NIXIE_STORE"), app.Options{Clock: func() time.Time { return now }, Owner: "worker-1"})
	ts.Check(err)
	ts.Check(store.Configure(ctx, st, "lines", nixie.QueueSettings{Order: nixie.OrderStrict}, "bob@desk", "one customer, one line"))
	number := 0
	put := func(m nixie.Message) {
		number++
		m.ID, err = nixie.ParseID(fmt.Sprintf("01970000-0000-7000-8000-%012d", number))
		ts.Check(err)
		m.Body = []byte("{}")
		_, err = st.Enqueue(ctx, m)
		ts.Check(err)
	}
	for _, m := range triedMessages() {
		put(nixie.Message{Queue: m.queue, Key: m.key, Stream: m.stream})
		for i, reason := range m.reasons {
			ds, err := st.Claim(ctx, m.queue, nixie.Want{Max: 1})
			ts.Check(err)
			f := &nixie.Failure{Generation: 1, Attempt: i + 1, StartedAt: now, FailedAt: now, Class: nixie.ClassTransient, Reason: reason,
				Type: "*mail.Error", Text: fmt.Sprint("it is a ", reason), Worker: "worker-1", Decision: nixie.Retry}
			s := nixie.Settlement{Delivery: ds[0], Verb: nixie.Retry, Failure: f}
			if i == len(m.reasons)-1 {
				s.Delay = noon.Add(m.next).Sub(now)
			}
			ts.Check(errors.Join(st.Settle(ctx, []nixie.Settlement{s})...))
			now = now.Add(time.Second)
		}
	}
	put(nixie.Message{Queue: "lines", Key: "l-2", Stream: "customer-7"})
	put(nixie.Message{Queue: "mail", Key: "m-5", NotBefore: noon.Add(72 * time.Hour)})
	put(nixie.Message{Queue: "mail", Key: "m-6"})
	ts.Check(st.Close())
}

// holdOne is a worker that holds a message of the queue from noon on, for four
// hours, and is there until the script ends: holder QUEUE.
func holdOne(ts *testscript.TestScript, _ bool, args []string) {
	st, err := app.OpenStore(ts.Getenv("NIXIE_STORE"), app.Options{Clock: func() time.Time { return noon }, Owner: "worker-2"})
	ts.Check(err)
	ts.Defer(func() { ts.Check(st.Close()) })
	ds, err := st.Claim(context.Background(), args[0], nixie.Want{Max: 1, Lease: 4 * time.Hour})
	ts.Check(err)
	if len(ds) != 1 {
		ts.Fatalf("nothing is due in queue %s", args[0])
	}
}
