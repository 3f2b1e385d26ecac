package redrive_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// TestKilledOnTheWayToABroker kills a redrive from the office at one moment after the other, with a
// store that is slower than the broker. Letters that the broker took and the store has not resolved
// are sent once more, under their IDs. They are two batches at most: one was being resolved and one
// was being sent. All other letters are sent once.
func TestKilledOnTheWayToABroker(t *testing.T) {
	const letters, batch = 30, 5
	worst, ended := 0, false
	for after := time.Duration(0); !ended; after += time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			var values []string
			for i := range letters {
				values = append(values, fmt.Sprint(i))
			}
			m := &mortal{Store: adopted(t, values...), post: &post{}, over: make(chan struct{})}
			first, second := sending(t, m, m, batch), sending(t, m.Store, m.post, batch)
			op, err := second.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "repaired"},
				nixie.Filter{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := first.Run(t.Context(), op.ID)
				done <- err
			}()
			time.Sleep(after)
			synctest.Wait()
			select {
			case err := <-done:
				ended = true
				if err != nil {
					t.Error(err)
				}
			default:
				m.dead.Store(true)
			}
			r, err := second.Run(t.Context(), op.ID)
			if err != nil || r.Pending > 0 || r.Skipped > 0 {
				t.Errorf("the next run: %+v, %v", r.Operation, err)
			}
			close(m.over)
			if !ended {
				if err := <-done; err == nil {
					t.Error("it was killed, and does not say so")
				}
			}
			ids := map[string]string{} // redrive IDs by value
			for _, p := range m.post.sent {
				id := headerOf(p, broker.HeaderRedriveID)
				if before := ids[string(p.Value)]; before != "" && before != id {
					t.Errorf("%s was sent as %s and as %s", p.Value, before, id)
				}
				ids[string(p.Value)] = id
			}
			again := len(m.post.sent) - len(ids)
			if len(ids) != letters || again > 2*batch {
				t.Errorf("killed after %s: %d of %d letters were sent, %d of them again, at most %d are wanted", after, len(ids),
					letters, again, 2*batch)
			}
			worst = max(worst, again)
		})
	}
	if worst != 2*batch {
		t.Errorf("at worst %d were sent again: no kill met both batches", worst)
	}
}

// sending makes an engine that sends letters to a broker.
func sending(t *testing.T, st redrive.Store, to broker.Publisher, batch int) *redrive.Engine {
	t.Helper()
	send, err := redrive.Destination{To: to}.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// mortal is a store and a broker of a process that may be killed. After that its calls have no
// effect. The broker keeps the records that it was given before.
type mortal struct {
	*memory.Store
	*post
	dead atomic.Bool
	over chan struct{} // closed at the end of a test: calls of the dead return
}

func (m *mortal) stopped() error {
	if !m.dead.Load() {
		return nil
	}
	<-m.over
	return nixie.Errorf(nixie.CodeUnavailable, "killed")
}

func (m *mortal) Publish(ctx context.Context, list []broker.Publication) func() []error {
	if err := m.stopped(); err != nil {
		return func() []error { return each(len(list), err) }
	}
	answers := m.post.Publish(ctx, list)
	return func() []error {
		<-time.After(time.Millisecond) // of a bubble
		if err := m.stopped(); err != nil {
			return each(len(list), err)
		}
		return answers()
	}
}

func (m *mortal) Resolve(ctx context.Context, list []store.Resolution) []error {
	<-time.After(5 * time.Millisecond) // likewise
	if err := m.stopped(); err != nil {
		return each(len(list), err)
	}
	return m.Store.Resolve(ctx, list)
}

func each(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func headerOf(p broker.Publication, name string) string {
	for _, h := range p.Headers {
		if h.Name == name {
			return string(h.Value)
		}
	}
	return ""
}
