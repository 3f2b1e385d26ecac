package lifecycle

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// act is one change of a message.
type act struct {
	name string
	on   store.Event // its row in the table of moves; "" if the state stays
	do   func(*Message, int64) error
}

func acts() []act {
	all := []act{
		{"claim", store.OnClaim, func(m *Message, now int64) error { return m.Claim(7, now+20, now) }},
		{"abandon", store.OnAbandon, func(m *Message, now int64) error { return m.Abandon("gone", false, now) }},
		{"redrive", store.OnRedrive, func(m *Message, now int64) error { return m.Redrive(now) }},
	}
	for _, on := range []store.Event{store.OnComplete, store.OnCancel, store.OnHold} {
		all = append(all, act{"end by " + string(on), on, func(m *Message, now int64) error { return m.End(on, now) }})
	}
	for _, verb := range []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt} {
		for _, delay := range []time.Duration{0, 5} {
			for _, order := range []nixie.Order{nixie.OrderNone, nixie.OrderStrict, nixie.OrderRelaxed} {
				st := nixie.Settlement{Verb: verb, Delay: delay, MayPass: true}
				all = append(all, act{fmt.Sprint(verb, " in ", delay, " ", order), store.EventOf(verb), func(m *Message, now int64) error {
					return m.Settle(&st, &nixie.QueueSettings{Order: order}, []string{"step"}, now)
				}})
			}
		}
	}
	for _, verb := range []store.ChangeVerb{store.RetryNow, store.Reschedule, store.ResetAttempts, store.MayPass} {
		c := store.Change{Verb: verb, At: time.Unix(0, 500)}
		all = append(all, act{string(verb), "", func(m *Message, now int64) error {
			if m.Public() != nixie.Queued {
				return errors.New("stores amend what is queued")
			}
			return m.Amend(&c, &nixie.QueueSettings{Order: nixie.OrderStrict}, now)
		}})
	}
	return all
}

// TestEveryMessage makes all messages that a few claims, crashes and redrives can make, and applies
// every act to each. The table of moves holds, a refusal changes nothing, and every message is
// sound afterwards.
func TestEveryMessage(t *testing.T) {
	t.Parallel()
	const now = 100
	ordered := Fresh(1)
	ordered.Ordered = true
	behind := ordered
	behind.State = Behind
	todo := []Message{Fresh(1), Fresh(200), ordered, behind, Member(7, 120, 50)}
	seen, steps := map[string]bool{}, 0
	moved := map[store.Event]bool{}
	for len(todo) > 0 {
		m := todo[0]
		todo = todo[1:]
		if key := fmt.Sprintf("%+v", m); seen[key] || m.Number > 4 || m.Generation > 2 {
			continue
		} else {
			seen[key] = true
		}
		for _, a := range acts() {
			is := m
			err := a.do(&is, now)
			steps++
			next, allowed := store.NextState(m.Public(), a.on)
			if a.on == "" {
				next, allowed = m.Public(), err == nil
			}
			if (err == nil) != allowed || err == nil && is.Public() != next {
				t.Fatalf("%s of %+v: %v, %+v", a.name, m, err, is)
			}
			if err != nil {
				if !reflect.DeepEqual(is, m) {
					t.Fatalf("%s of %+v was refused (%v) and left %+v", a.name, m, err, is)
				}
				continue
			}
			moved[a.on] = true
			if wrong := flaw(&m, &is, now); wrong != "" {
				t.Fatalf("%s of %+v: %s: %+v", a.name, m, wrong, is)
			}
			todo = append(todo, is)
		}
	}
	for _, move := range store.MessageMoves() {
		if move.From != "" && !moved[move.On] {
			t.Errorf("nothing does %s", move.On)
		}
	}
	t.Logf("%d messages × %d acts: %d steps", len(seen), len(acts()), steps)
}

// flaw says why a changed message is unsound, "" if it is sound.
func flaw(was, is *Message, now int64) string {
	leased, ended := is.State == Leased, !is.OnItsWay()
	switch {
	case leased != (is.Owner != 0) || leased != (is.Until != 0) || leased != (is.Claimed != 0):
		return "it has a lease exactly while it is leased"
	case ended != (is.Ended != 0):
		return "it has a moment of its end exactly when it has ended"
	case ended && (is.Abandoned != "" || is.MayPass || is.Ended != now):
		return "it ended now, and neither waits to be judged nor to pass"
	case is.Attempts < 0 || is.Crashes < 0 || is.Attempts > is.Deliveries || int64(is.Deliveries) > is.Number:
		return "impossible counts"
	case is.Number < was.Number || is.Generation < was.Generation || is.Number > 0 && is.Received == 0:
		return "the numbers of leases and generations only grow"
	case was.Received != 0 && is.Received != was.Received:
		return "the first lease began once"
	case is.Public() == nixie.Queued && is.State == Queued && was.State == Leased && is.Due < now:
		return "it was due before it came back"
	case is.MayPass && !is.Ordered:
		return "there is nothing to pass"
	}
	return ""
}

// TestCounts shows how each act changes the counts, as the contract of stores says: a crash, a
// release and a claim that judges spend no attempt.
func TestCounts(t *testing.T) {
	t.Parallel()
	strict := &nixie.QueueSettings{Order: nixie.OrderStrict}
	settle := func(verb nixie.Verb) func(*Message) error {
		return func(m *Message) error { return m.Settle(&nixie.Settlement{Verb: verb, Delay: 3}, strict, nil, 100) }
	}
	claim := func(m *Message) error { return m.Claim(7, 120, 100) }
	abandon := func(m *Message) error { return m.Abandon("a", false, 100) }
	stopped := func(m *Message) error { return m.Abandon("a", true, 100) }
	type acts = []func(*Message) error
	for _, c := range []struct {
		name      string
		acts      acts
		attempts  int
		delivered int
		crashes   int
		abandoned string
		due       int64
	}{
		{"claimed", acts{claim}, 1, 1, 0, "", 1},
		{"released", acts{claim, settle(nixie.Release)}, 0, 1, 0, "", 103},
		{"retried", acts{claim, settle(nixie.Retry)}, 1, 1, 0, "", 103},
		{"crashed", acts{claim, abandon}, 0, 1, 1, "a", 100},
		{"claimed to be judged", acts{claim, abandon, claim}, 0, 2, 1, "a", 100},
		{"the judge crashed", acts{claim, abandon, claim, abandon}, 0, 2, 1, "a", 100},
		{"the judge let it go", acts{claim, abandon, claim, settle(nixie.Release)}, 0, 2, 1, "a", 103},
		{"judged", acts{claim, abandon, claim, settle(nixie.Retry)}, 0, 2, 1, "", 103},
		{"crashed twice", acts{claim, abandon, claim, settle(nixie.Retry), claim, abandon}, 0, 3, 2, "a", 100},
		{"survived", acts{claim, abandon, claim, settle(nixie.Retry), claim, settle(nixie.Retry)}, 1, 3, 0, "", 103},
		{"stopped", acts{claim, stopped}, 0, 1, 0, "", 100},
		{"stopped, then crashed", acts{claim, stopped, claim, abandon}, 0, 2, 1, "a", 100},
		{"the judge was stopped", acts{claim, abandon, claim, stopped}, 0, 2, 1, "a", 100},
		{"redriven", acts{claim, settle(nixie.Bury), func(m *Message) error { return m.Redrive(100) }}, 0, 0, 0, "", 100},
		{"reset", acts{claim, abandon, func(m *Message) error {
			return m.Amend(&store.Change{Verb: store.ResetAttempts}, strict, 100)
		}}, 0, 0, 0, "", 100},
	} {
		m := Fresh(1)
		for _, do := range c.acts {
			if err := do(&m); err != nil {
				t.Fatal(c.name, err)
			}
		}
		got := fmt.Sprint(m.Attempts, m.Deliveries, m.Crashes, m.Abandoned, m.Due)
		if want := fmt.Sprint(c.attempts, c.delivered, c.crashes, c.abandoned, c.due); got != want {
			t.Errorf("%s: attempts, deliveries, crashes, abandoned by, due are %s, want %s", c.name, got, want)
		}
	}
}

// TestStops shows for how many holders that were told to stop a message pays nothing, and what
// begins the count anew.
func TestStops(t *testing.T) {
	t.Parallel()
	m := Fresh(1)
	vanish := func(told bool) {
		t.Helper()
		if err := errors.Join(m.Claim(7, 120, 100), m.Abandon("a", told, 100)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, deliveries, free, stops, crashes int) {
		t.Helper()
		p := m.Patience
		if m.Attempts != 0 || m.Deliveries != deliveries || p.Free != free || p.Stops != stops || m.Crashes != crashes ||
			(m.Abandoned != "") != (crashes > 0) || (p.StoppedBy != "") != (stops > 0) {
			t.Errorf("%s: %+v", when, m)
		}
	}
	for n := range lease.MaxStops {
		vanish(true)
		check("a stop", n+1, n+1, n+1, 0)
	}
	vanish(true)
	check("one stop more", lease.MaxStops+1, lease.MaxStops, lease.MaxStops, 1)
	judge := func() {
		t.Helper()
		retry := &nixie.Settlement{Verb: nixie.Retry}
		if err := errors.Join(m.Claim(7, 120, 100), m.Settle(retry, &nixie.QueueSettings{}, nil, 100)); err != nil {
			t.Fatal(err)
		}
	}
	judge() // no holder survived
	vanish(true)
	check("a stop after the judgement", lease.MaxStops+3, lease.MaxStops, lease.MaxStops, 2)
	judge()
	judge() // it ran and failed: a survivor
	vanish(true)
	if m.Patience.Stops != 1 || m.Crashes != 0 || m.Attempts != 1 {
		t.Errorf("a stop after an answer: %+v", m)
	}
}

// TestRedrive shows which fields a redrive keeps and which it resets.
func TestRedrive(t *testing.T) {
	t.Parallel()
	m := Message{State: Dead, Attempts: 3, Deliveries: 5, Crashes: 1, Generation: 2, Redrives: 1, Number: 9, Received: 4, Ended: 80,
		Alone: true, Steps: []string{"a"}, Rank: 6}
	if err := m.Redrive(100); err != nil {
		t.Fatal(err)
	}
	want := Message{State: Queued, Due: 100, Generation: 3, Redrives: 2, Redriven: 100, Number: 9, Received: 4, Steps: []string{"a"},
		Rank: 6}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
}

// TestReset shows which fields a reset of the attempts keeps: what crashes convict by is forgiven.
func TestReset(t *testing.T) {
	t.Parallel()
	m := Message{State: Queued, Due: 90, Attempts: 3, Deliveries: 5, Crashes: 2, Generation: 2, Redrives: 1, Number: 9, Received: 4,
		Abandoned: "a", Alone: true, Steps: []string{"a"}, Rank: 6}
	if err := m.Amend(&store.Change{Verb: store.ResetAttempts}, &nixie.QueueSettings{}, 100); err != nil {
		t.Fatal(err)
	}
	want := Message{State: Queued, Due: 90, Generation: 2, Redrives: 1, Number: 9, Received: 4, Steps: []string{"a"}, Rank: 6}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
}

// TestPasses shows that a message released with MayPass may pass the head of a strict stream until
// its next claim.
func TestPasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verb    nixie.Verb
		order   nixie.Order
		ordered bool
		want    bool
	}{
		{nixie.Release, nixie.OrderStrict, true, true},
		{nixie.Release, nixie.OrderStrict, false, false},
		{nixie.Release, nixie.OrderRelaxed, true, false},
		{nixie.Retry, nixie.OrderStrict, true, false},
	} {
		m := Member(7, 120, 50)
		m.Ordered = c.ordered
		if err := m.Settle(&nixie.Settlement{Verb: c.verb, MayPass: true}, &nixie.QueueSettings{Order: c.order}, nil, 100); err != nil ||
			m.MayPass != c.want {
			t.Errorf("%+v: %v, %v", c, m.MayPass, err)
		}
		if err := m.Claim(7, 200, 150); err != nil || m.MayPass {
			t.Errorf("%+v: it may pass while it is leased: %v", c, err)
		}
	}
}

// TestDue shows when a message is due after a change by an operator.
func TestDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verb          store.ChangeVerb
		due, at, want int64
	}{
		{store.RetryNow, 500, 0, 100}, {store.RetryNow, 50, 0, 50},
		{store.Reschedule, 50, 300, 300}, {store.Reschedule, 500, 300, 300}, {store.Reschedule, 500, 20, 100},
		{store.Reschedule, 50, 20, 100},
	} {
		m := Fresh(c.due)
		if err := m.Amend(&store.Change{Verb: c.verb, At: time.Unix(0, c.at)}, &nixie.QueueSettings{}, 100); err != nil || m.Due != c.want {
			t.Errorf("%+v: due at %d, %v", c, m.Due, err)
		}
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.Unix(0, 1).UTC(), time.Date(2261, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got := Moment(Nanos(at)); !got.Equal(at) {
			t.Errorf("%s came back as %s", at, got)
		}
	}
	near, far := time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if Nanos(far) <= Nanos(near) || Nanos(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)) >= Nanos(time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Error("what is farther away is not farther away")
	}
}

// A later generation that ended elsewhere is recorded as its letter says. The facts about the first
// lease stay.
func TestDieElsewhere(t *testing.T) {
	at := time.Unix(100, 0)
	l := &nixie.Letter{DiedAt: at, Message: nixie.Message{Generation: 3, Redrives: 2, Attempts: 4, Deliveries: 5, Crashes: 1,
		FirstReceivedAt: at.Add(-time.Second)}}
	m := Message{State: Canceled, Number: 2, Ordered: true, Ended: 7}
	m.DieElsewhere(l)
	want := Message{State: Dead, Generation: 3, Redrives: 2, Attempts: 4, Deliveries: 5, Crashes: 1, Number: 5, Received: Nanos(at) - 1e9,
		Ended: Nanos(at)}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
	l.Message.EndedAt, m.Number = at.Add(time.Second), 9
	m.DieElsewhere(l)
	if m.Ended != Nanos(at)+1e9 || m.Number != 9 || m.Received != Nanos(at)-1e9 {
		t.Errorf("%+v", m)
	}
}

// TestMayLeave shows which messages may move to another queue.
func TestMayLeave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		letter nixie.ID
		to     string
		ok     bool
	}{{nixie.ID{}, "b", true}, {nixie.ID{}, "a", false}, {nixie.ID{2}, "b", false}, {nixie.ID{2}, "a", false}} {
		if err := MayLeave(nixie.ID{1}, c.letter, "a", c.to); (err == nil) != c.ok ||
			err != nil && nixie.CodeOf(err) != nixie.CodeConflict {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
