package postgres

import (
	"context"
	"sync"
	"sync/atomic"
)

// A heartbeat costs a transaction ID, and the list of owners is only about what they hold. So a
// process that holds nothing announces that it will be silent for a while, and sends a heartbeat
// before it claims again.
const (
	restAfter = 3  // beats without a claim
	restFor   = 30 // beats, half of the time for which rest_owner.sql announces it
)

// rest counts the heartbeats that are left out.
type rest struct {
	claiming sync.RWMutex // claims hold it for reading; a change of the rest holds it alone
	claimed  atomic.Bool  // since the last beat
	quiet    int          // beats without a claim
	left     int          // beats that are left out from now on
}

// arrives begins a claim, which has to unlock claiming for reading at its end. A process that is
// silent sends a heartbeat first.
func (o *ownership) arrives(ctx context.Context, s *Store) error {
	o.rest.claimed.Store(true)
	o.rest.claiming.RLock()
	if o.rest.left == 0 {
		return nil
	}
	o.rest.claiming.RUnlock()
	if err := o.wakes(ctx, s); err != nil {
		return err
	}
	o.rest.claiming.RLock()
	return nil
}

// wakes ends the rest.
func (o *ownership) wakes(ctx context.Context, s *Store) error {
	o.rest.claiming.Lock()
	defer o.rest.claiming.Unlock()
	if o.rest.left == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer stop()
	if _, err := s.own.Exec(ctx, s.named(beat), o.self()); err != nil {
		return s.explain(err)
	}
	o.rest.left = 0
	return nil
}

// rests reports whether the process stays silent, or begins to because it has claimed nothing for a
// while and holds nothing.
func (o *ownership) rests(ctx context.Context, s *Store) bool {
	r := &o.rest
	if !r.claiming.TryLock() {
		return false
	}
	defer r.claiming.Unlock()
	if r.quiet++; r.claimed.Swap(false) {
		r.quiet = 0
	}
	if r.quiet < restAfter {
		return false
	}
	if r.left > 1 {
		r.left--
		return true
	}
	r.left = 0
	done, err := s.own.Exec(ctx, s.named("rest_owner.sql"), o.self())
	if err == nil && done.RowsAffected() > 0 {
		r.left = restFor
	}
	return r.left > 0
}
