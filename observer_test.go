package nixie_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// callAll raises every event once.
func callAll(o *nixie.Observer, d *nixie.Delivery) {
	o.Enqueued("q", 1)
	o.Received("q", nil)
	o.Extended("q", nil, nil)
	o.Settled("q", nil, nil)
	o.Lost(d)
	o.Late(d, time.Second)
	o.Moved(nil)
	o.Pruned(1)
	o.Trouble("q", nil)
	o.Connected("q", true)
	o.Breaker(nixie.BreakerChange{})
	o.Noticed(nixie.NoticeHandled{})
}

// An observer that is not there costs nothing: an event of one is a call of an empty function, and
// no more. The test measures such a call in the same moment, because the machine may be busy; an
// idle one needs 2 ns.
func TestNoObserverCostsNothing(t *testing.T) {
	d := &nixie.Delivery{}
	empty := &struct {
		call func(string, *nixie.Delivery, error)
	}{func(string, *nixie.Delivery, error) {}}
	for name, o := range map[string]*nixie.Observer{"nil": (*nixie.Observer)(nil).Complete(), "empty": new(nixie.Observer).Complete()} {
		if n := testing.AllocsPerRun(100, func() { callAll(o, d) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		const rounds, events = 20_000, 12
		least, call := time.Duration(1<<62), time.Duration(1<<62)
		for range 50 {
			began := time.Now()
			for range rounds {
				callAll(o, d)
			}
			middle := time.Now()
			for range rounds * events {
				empty.call("q", d, nil)
			}
			least, call = min(least, middle.Sub(began)), min(call, time.Since(middle))
		}
		t.Logf("%s: %.1f ns for each event, %.1f for a call", name, float64(least)/(rounds*events), float64(call)/(rounds*events))
		if least > 3*call {
			t.Errorf("%s: an event takes %.1f times as long as the call of an empty function, want at most 3",
				name, float64(least)/float64(call))
		}
	}
}

// recorder has a function for each event, which writes its name down.
func recorder(into *[]string) *nixie.Observer {
	o := &nixie.Observer{}
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			*into = append(*into, name)
			return nil
		}))
	}
	return o
}

// Tee passes on every event that there is.
func TestTeePassesEveryEvent(t *testing.T) {
	var first, second []string
	callAll(nixie.Tee(recorder(&first), recorder(&second)), &nixie.Delivery{})
	if n := reflect.TypeFor[nixie.Observer]().NumField(); len(first) != n || !slices.Equal(first, second) {
		t.Errorf("the first got %v, the second %v, of %d events", first, second, n)
	}
}

// A store that is observed tells what it accepts, who moved which letter and what is gone.
func TestObserveAStore(t *testing.T) {
	ctx := context.Background()
	var told []string
	o := &nixie.Observer{
		Enqueued: func(queue string, n int) { told = append(told, fmt.Sprint("enqueued ", queue, " ", n)) },
		Moved: func(moves []nixie.LetterMove) {
			for _, m := range moves {
				told = append(told, fmt.Sprintf("%s %q by %s: %s", m.Event, m.Letter.Message.Queue, m.Actor, nixie.CodeOf(m.Err)))
			}
		},
		Pruned: func(rows int64) { told = append(told, fmt.Sprint("pruned ", rows)) },
	}
	st := store.Observe(memory.New(memory.Options{}), o)
	if _, err := st.Enqueue(ctx, nixie.Message{Queue: "a", DedupeKey: "k"}, nixie.Message{Queue: "a", DedupeKey: "k"},
		nixie.Message{Queue: "b"}, nixie.Message{Queue: "b"}); err != nil {
		t.Fatal(err)
	}
	desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, "a")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := desk.Receive(ctx, nixie.Want{Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desk.Done(ctx, got[0], nixie.Permanent(errors.New("no")), time.Now()); err != nil {
		t.Fatal(err)
	}
	letters, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	unknown := nixie.ID{1}
	st.Resolve(ctx, []store.Resolution{
		{Letter: letters[0].ID, Event: store.OnRedrive, Actor: "me", Reason: "fixed"},
		{Letter: unknown, Event: store.OnDiscard, Actor: "me", Reason: "no"},
	})
	if _, err := st.Purge(ctx, "b", nixie.Filter{}, 10, "me", "no"); err != nil {
		t.Fatal(err)
	}
	want := `enqueued a 1, enqueued b 2, redrive "a" by me: , discard "" by me: not-found, pruned 2`
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("told %s\nwant %s", got, want)
	}
	if plain := memory.New(memory.Options{}); store.Observe(plain, &nixie.Observer{}) != store.Store(plain) {
		t.Error("a store without an observer is another one")
	}
}
