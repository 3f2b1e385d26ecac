package contest

import "context"

// late is a handler that counts the messages of a foreign transaction separately.
type late struct {
	n             int
	ledger, other *Ledger
}

// Handle implements Handler.
func (h *late) Handle(t Task) error {
	if t.I < h.n {
		return h.ledger.Handle(t)
	}
	t.I -= h.n
	return h.other.Handle(t)
}

// withForeign begins a foreign transaction. It returns a function to call after everything else is
// drained: it commits, and the messages of the transaction must arrive.
func (m *Measurement) withForeign(ctx context.Context, lib Library, ledger *Ledger) (Handler, func() error, error) {
	commit, err := lib.(Bearer).Foreign(ctx, Tasks(m.N, m.N+foreign))
	if err != nil {
		return nil, nil, err
	}
	h := &late{m.N, ledger, NewLedger(m.Setup.Scenario, foreign)}
	return h, func() error {
		if err := commit(); err != nil {
			return err
		}
		return settled(ctx, lib, h.other, func() {})
	}, nil
}
