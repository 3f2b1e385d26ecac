package contest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ask measures requests to a main loop. Ask checks that each answer is that of its request.
func (m *Measurement) ask(ctx context.Context, lib Library, r *Result) error {
	asker, ok := lib.(Asker)
	if !ok {
		return fmt.Errorf("%s answers no requests", m.Entrant.Name)
	}
	a := m.arrivals()
	a.patient = true // a caller waits for its answer, and so does its load
	ask, stop, err := asker.Serve(ctx, a.ledger)
	if err != nil {
		return err
	}
	err = m.timed(r, func(ended func()) error {
		if m.Setup.Scenario == RoundTrip {
			err = a.send(ctx, func(ctx context.Context, t Task) error {
				err := ask(ctx, t)
				a.handled[t.I].Store(int64(time.Since(a.start)))
				return err
			})
		} else {
			err = share(0, m.N, 1, producers, func(i, _ int) error { return ask(ctx, NewTask(i)) })
		}
		if err != nil {
			return err
		}
		return settled(ctx, lib, a.ledger, ended)
	})
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	if m.Setup.Scenario == RoundTrip {
		r.Latency = a.latency(min(arrivalWarm, m.N/2))
	}
	return a.ledger.Check()
}
