package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// TestUnknownTypesWaitForTheirWorker has a rolling deploy: old workers leave a message of a new
// type to the first new worker. Without one it dies after 15 minutes, whichever workers refused it,
// and a redrive begins anew.
func TestUnknownTypesWaitForTheirWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := memory.New(memory.Options{})
		known := nixie.NewType[string]("known", nixie.Queue("q"))
		fresh := nixie.NewType[string]("fresh", nixie.Queue("q"))
		ran := map[string]int{}
		does := func(_ context.Context, job *nixie.Job[string]) error { ran[job.Type]++; return nil }
		of := func(st *memory.Store, routes ...nixie.Route) *going {
			return start(t, worker.Config{Source: store.NewSource(st, "q"), Handler: nixie.Routes(routes...)})
		}
		send := func(of nixie.Type[string], key string) {
			_, err := of.Enqueue(t.Context(), first, "x", nixie.Key(key))
			if err != nil {
				t.Fatal(err)
			}
		}
		begin := func() []*going {
			return []*going{of(first, known.Handle(does)), of(first.Join("second"), known.Handle(does))}
		}
		end := func(all []*going) {
			for _, g := range all {
				g.end()
			}
		}
		old := begin()
		send(fresh, "soon")
		send(known, "known")
		time.Sleep(5 * time.Minute)
		if m := message(t, first, "soon"); m.State != nixie.Queued || m.Attempts != 0 || m.Patience.Free != m.Deliveries ||
			ran["known"] != 1 {
			t.Fatalf("after 5 minutes %+v, ran %v", m.Message, ran)
		}
		newer := of(first.Join("third"), known.Handle(does), fresh.Handle(does))
		end(old) // else chance decides who asks first
		time.Sleep(time.Minute)
		newer.end()
		if m := message(t, first, "soon"); m.State != nixie.Succeeded || ran["fresh"] != 1 {
			t.Fatalf("with a new worker %+v, ran %v", m.Message, ran)
		}
		old = begin()
		send(fresh, "never")
		for range 2 {
			time.Sleep(nixie.DefaultUnknownTypes - time.Second)
			if m := message(t, first, "never"); m.State != nixie.Queued {
				t.Fatalf("too soon %+v", m.Message)
			}
			time.Sleep(time.Minute)
			letters, _, err := first.Letters(t.Context(), nixie.Filter{}, store.Page{Whole: true})
			if err != nil || len(letters) != 1 || letters[0].Reason != nixie.ReasonUnknownType || letters[0].Status != nixie.StatusOpen {
				t.Fatalf("letters %+v, %v", letters, err)
			}
			errs := first.Resolve(t.Context(), []store.Resolution{{Letter: letters[0].ID, Event: store.OnRedrive, Actor: "ann",
				Reason: "again"}})
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
		}
		end(old)
		sound(t, first)
	})
}
