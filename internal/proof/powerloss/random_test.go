package powerloss_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestRandomPowerLoss lets the power go at every write and sync of random acts on
// a store with a random past: what is found afterwards is the store as it was
// before the act under way, or after it, and never anything between or older.
func TestRandomPowerLoss(t *testing.T) {
	proof.Run(t, "power-loss", loseAt)
}

// stepsOfSeed counts the acts of a seed in which the power goes.
const stepsOfSeed = 3

// loseAt plays one seed. Every fourth has no past: the power goes while the store
// is made.
func loseAt(t *testing.T, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := faultdisk.New(t, "store")
	p := &play{t: t, ctx: t.Context(), rng: rng, clock: storetest.NewClock(), disk: disk}
	p.open()
	plan := faultdisk.Plan{Seeds: 1, Seed: seed}
	queues := []string{plainQueue, orderedQueue} // to be configured
	if seed%4 != 0 {
		for _, queue := range queues {
			p.configure(queue)
		}
		for range 5 + rng.IntN(30) {
			p.pass()
			p.act()
		}
		queues, plan.From = nil, disk.Ops()
	}
	var steps []step
	for i := range stepsOfSeed {
		p.pass()
		s := step{at: p.clock.Now(), before: p.seen(p.s)}
		if i < len(queues) {
			s.what = p.configure(queues[i])
		} else {
			s.what = p.act()
		}
		disk.Mark(s.what)
		plan.To = disk.Ops()
		s.after = p.seen(p.s)
		steps = append(steps, s)
	}
	must(t, p.s.Close())
	tally := faultdisk.EachCrash(t, disk, plan, func(t *testing.T, c faultdisk.Crash) {
		if err := p.judge(c, steps); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	})
	return tally.Points
}

// step is an act that the power goes in, and what was seen around it.
type step struct {
	what          string
	at            time.Time
	before, after string
}

// judge opens what a crash left at the moment of the act that was under way.
func (p *play) judge(c faultdisk.Crash, steps []step) error {
	done := len(c.Acked())
	now := steps[min(done, len(steps)-1)]
	s, err := sqlite.Open(c.Path("store.db"), sqlite.Options{Reserve: -1, Clock: func() time.Time { return now.at }})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it was only looked at
	got := p.seen(s)
	if whole := got == now.after || done < len(steps) && got == now.before; !whole {
		return fmt.Errorf("during %q after %d acts: neither as before, %s; nor as after, %s",
			now.what, done, difference(now.before, got), difference(now.after, got))
	}
	if err := p.carriesOn(s); err != nil {
		return fmt.Errorf("during %q: does not go on: %w", now.what, err)
	}
	return nil
}

// carriesOn uses a store that was recovered, and looks for what is broken.
func (p *play) carriesOn(s *sqlite.Store) error {
	if _, err := s.Enqueue(p.ctx, nixie.Message{Queue: "after"}); err != nil {
		return err
	}
	for _, queue := range []string{"after", plainQueue, orderedQueue} {
		ds, err := s.Claim(p.ctx, queue, nixie.Want{Max: 10, Lease: time.Minute})
		if err != nil {
			return err
		}
		if queue == "after" && len(ds) != 1 {
			return fmt.Errorf("%d new messages are handed out", len(ds))
		}
		settlements := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			settlements[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		}
		for _, err := range s.Settle(p.ctx, settlements) {
			if err != nil {
				return err
			}
		}
	}
	wrong, err := storetest.Broken(p.ctx, s)
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("broken: %q", wrong)
	}
	return err
}
