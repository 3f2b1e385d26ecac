package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie/store/engine"
)

const (
	heartbeat = 10 * time.Second // of a process that claims
)

// beat is the heartbeat of an owner.
const beat = "update @.owner set seen = clock_timestamp() where n = $1 and not gone"

// ownership is the row of this process in the table owner.
type ownership struct {
	name string
	mu   sync.Mutex
	n    int64
	told bool // to stop
	stop context.CancelFunc
	done chan struct{} // closed when heartbeats have ended

	claims atomic.Int64 // numbers of batches that were used
	rest   rest
}

// registered returns the number of this process. It enters the list with its first claim, and again
// if it was taken for dead.
func (o *ownership) registered(ctx context.Context, s *Store, known int64) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n != 0 && o.n != known {
		return o.n, nil
	}
	asked, answered := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer answered()
	if err := s.own.QueryRow(asked, s.named("add_owner.sql"), o.name, o.told, s.clockArg()).Scan(&o.n); err != nil {
		return 0, err
	}
	if o.stop == nil {
		beating, stop := context.WithCancel(context.WithoutCancel(ctx))
		o.stop, o.done = stop, make(chan struct{})
		go o.beat(beating, s)
	}
	return o.n, nil
}

// self returns the number of this process, 0 before its first claim.
func (o *ownership) self() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// stopping implements Stopping of store.Features.
func (s *Store) stopping(ctx context.Context, told bool) error {
	if !s.owner.tell(told) {
		return nil
	}
	return s.writeOver(ctx, s.own, func(t *tx) error {
		t.quiet = true
		t.run("update @.owner set stopping = $2 where n = $1", s.owner.self(), told)
		return nil
	})
}

// tell notes whether this process was told to stop, and reports whether its row has to say it.
func (o *ownership) tell(told bool) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.told
	o.told = told
	return was != told && o.n != 0
}

// batches returns a number behind which as many are free as one claim may need. No two claims ever
// get the same, even if the server forgets the first: 23 bits of the number are the owner.
func (o *ownership) batches(owner int64) int64 {
	return batchesOf(owner) + o.claims.Add(maxPieces) - maxPieces
}

// batchesOf returns the number before the batches of an owner.
func batchesOf(owner int64) int64 { return owner & (1<<23 - 1) << 40 }

// beat sends heartbeats. The next one makes up for one that fails.
func (o *ownership) beat(ctx context.Context, s *Store) {
	defer close(o.done)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.once(ctx, s)
		}
	}
}

// once sends one heartbeat, and does what is due with it. A dead connection must not hold up the
// next one.
func (o *ownership) once(ctx context.Context, s *Store) {
	ctx, stop := context.WithTimeout(ctx, heartbeat)
	defer stop()
	if o.rests(ctx, s) {
		return
	}
	_, _ = s.own.Exec(ctx, s.named(beat), o.self())
	_, _ = s.own.Exec(ctx, s.named("forget_progress.sql"), o.self())
	s.fold(ctx)
	_ = s.forgetStreams(ctx)
}

// leave ends the heartbeats and says that the process is gone, so that its messages are judged at
// once.
func (o *ownership) leave(ctx context.Context, s *Store) error {
	if o.stop == nil {
		return nil
	}
	o.stop()
	<-o.done
	_, err := s.own.Exec(ctx, s.named("unlist.sql"), []int64{o.self()})
	return err
}

// sweep ends the leases that are over and those of dead owners. Their messages wait to be judged,
// because a crash is an ordinary failure. Rows that others have locked are skipped.
func (t *tx) sweep() error {
	var dead []int64
	t.read(func(r row) error {
		var n int64
		err := r.Scan(&n)
		dead = append(dead, n)
		return err
	}, "lock_dead_owners.sql")
	if err := t.send(); err != nil {
		return err
	}
	if err := engine.Sweep(t.verb(), dead); err != nil {
		return err
	}
	t.flush()
	mark := func(r row) error {
		var own streamKey
		err := r.Scan(&own.queue, &own.name)
		t.markDirty(own.queue, own.name)
		return err
	}
	t.read(mark, "sweep_rows.sql", t.now, dead)
	t.read(mark, "sweep_stream_rows.sql", t.now, dead)
	if err := t.sweepBatches(dead); err != nil {
		return err
	}
	t.run("unlist.sql", dead)
	if err := t.send(); err != nil {
		return err
	}
	t.recomputeHeads()
	t.work.dirty = nil
	return nil
}
