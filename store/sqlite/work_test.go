package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// work does everything that a process does to a store, at random, and reports each step only after
// the store has acknowledged it. Unless every is 0 it takes one step more often than others.
func (c *childProcess) work(seed int64, every int, often func(*processWork) error) error {
	l := newWork(c, seed)
	for n := 1; ; n++ {
		step := l.step
		if every > 0 && n%every == 0 {
			step = func() error { return often(l) }
		}
		if err := step(); err != nil {
			return err
		}
	}
}

type processWork struct {
	c    *childProcess
	s    *sqlite.Store
	rng  *rand.Rand
	name string
	n    int
	held []*nixie.Delivery
}

func newWork(c *childProcess, seed int64) *processWork {
	return &processWork{c: c, s: c.s, rng: rand.New(rand.NewPCG(uint64(seed), 1)), name: fmt.Sprint(seed)}
}

func (l *processWork) step() error {
	switch n := l.rng.IntN(20); {
	case n < 5:
		return l.enqueue()
	case n < 9 || len(l.held) == 0:
		return l.claim()
	case n < 16:
		return l.settle()
	case n < 17:
		return l.extend()
	case n < 18:
		return l.cancel()
	}
	return l.redrive()
}

func (l *processWork) enqueue() error {
	ms := make([]nixie.Message, 1+l.rng.IntN(4)*l.rng.IntN(4))
	for i := range ms {
		l.n++
		ms[i] = nixie.Message{Queue: "q", Key: fmt.Sprintf("%s-%d", l.name, l.n), Body: []byte(strings.Repeat("b", l.rng.IntN(2000))),
			Priority: max(l.rng.IntN(12)-9, 0)}
		if l.rng.IntN(3) == 0 {
			ms[i].DedupeKey = fmt.Sprint("dedupe-", l.rng.IntN(50))
		}
		if l.rng.IntN(6) == 0 {
			ms[i].Delay = time.Duration(l.rng.IntN(50)) * time.Millisecond
		}
	}
	receipts, err := l.s.Enqueue(context.Background(), ms...)
	if err != nil {
		return err
	}
	for i, r := range receipts {
		l.c.Say("enqueued", r.ID, ms[i].Key, r.Duplicate)
	}
	return nil
}

func (l *processWork) claim() error {
	if len(l.held) > 60 {
		return l.settle()
	}
	ds, err := l.s.Claim(context.Background(), "q", nixie.Want{Max: 1 + l.rng.IntN(12), Lease: time.Hour})
	if err != nil {
		return err
	}
	for _, d := range ds {
		l.c.Say("claimed", d.ID, d.Lease.Number, d.Generation)
	}
	l.held = append(l.held, ds...)
	return nil
}

// some takes up to n of the deliveries in hand.
func (l *processWork) some(n int) []*nixie.Delivery {
	l.rng.Shuffle(len(l.held), func(i, j int) { l.held[i], l.held[j] = l.held[j], l.held[i] })
	return l.held[:min(n, len(l.held))]
}

func (l *processWork) settle() error {
	ds := l.some(1 + l.rng.IntN(8))
	l.held = l.held[len(ds):]
	sts := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		verb := child.Verbs()[max(l.rng.IntN(9)-3, 0)]
		if d.Deliveries > 6 {
			verb = nixie.Complete
		}
		sts[i] = nixie.Settlement{Delivery: d, Verb: verb}
		if verb != nixie.Complete && verb != nixie.Release {
			sts[i].Failure = &nixie.Failure{Text: fmt.Sprint("failure of lease ", d.Lease.Number), Reason: nixie.ReasonHandler}
		}
		if verb == nixie.Bury || verb == nixie.Hold {
			sts[i].Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f", Redrivable: true}
		}
	}
	for i, err := range l.s.Settle(context.Background(), sts) {
		switch nixie.CodeOf(err) {
		case "":
			l.c.Say("settled", ds[i].ID, ds[i].Lease.Number, ds[i].Generation, sts[i].Verb)
		case nixie.CodeLeaseLost: // another process canceled it
		default:
			return err
		}
	}
	return nil
}

func (l *processWork) extend() error {
	ds := l.some(5)
	steps := make([]string, len(ds))
	for i, d := range ds {
		steps[i] = fmt.Sprint("step-", d.Lease.Number)
		if err := d.Step(steps[i], func() error { return nil }); err != nil {
			return err
		}
	}
	for i, err := range l.s.Extend(context.Background(), ds, time.Minute) {
		switch nixie.CodeOf(err) {
		case "":
			l.c.Say("step", ds[i].ID, steps[i])
		case nixie.CodeLeaseLost:
		default:
			return err
		}
	}
	return nil
}

func (l *processWork) cancel() error {
	d := l.some(1)[0]
	err := l.s.Amend(context.Background(), []nixie.ID{d.ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0]
	switch nixie.CodeOf(err) {
	case "":
		l.held = l.held[1:]
		l.c.Say("canceled", d.ID, d.Lease.Number, d.Generation)
	case nixie.CodeConflict, nixie.CodeNotFound:
	default:
		return err
	}
	return nil
}

// redrive works through an operation over some of the letters.
func (l *processWork) redrive() error {
	ctx := context.Background()
	op, err := l.s.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: l.name},
		nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview}}, 1+l.rng.IntN(4))
	if err != nil {
		return err
	}
	found, err := store.FindOperation(ctx, l.s, store.OperationQuery{ID: op.ID, Next: 10})
	letters := found.Next
	if err != nil {
		return err
	}
	for _, id := range letters {
		err := l.s.Resolve(ctx, []store.Resolution{{Letter: id, Event: store.OnRedrive, Actor: l.name, Operation: op.ID, Force: true}})[0]
		switch nixie.CodeOf(err) {
		case "":
			l.c.Say("redriven", id, op.ID)
		case nixie.CodeConflict: // another was faster, or the key is taken
		default:
			return err
		}
	}
	return nil
}

// redriveTheDead buries something and redrives.
func (l *processWork) redriveTheDead() error {
	if ds := l.some(1); len(ds) > 0 && ds[0].Deliveries <= 6 {
		l.held = l.held[1:]
		err := l.s.Settle(context.Background(), []nixie.Settlement{{
			Delivery: ds[0], Verb: nixie.Bury, Failure: &nixie.Failure{Text: fmt.Sprint("failure of lease ", ds[0].Lease.Number)},
			Burial: &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f", Redrivable: true},
		}})[0]
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
			return err
		}
		if err == nil {
			l.c.Say("settled", ds[0].ID, ds[0].Lease.Number, ds[0].Generation, nixie.Bury)
		}
	}
	l.c.Say("redriving")
	return l.redrive()
}

func (l *processWork) prune() error {
	l.c.Say("pruning")
	_, err := l.s.Prune(context.Background(), store.Pruning{Limit: 50})
	return err
}

// checkpoint moves what is in the log of writes into the file.
func (l *processWork) checkpoint() error {
	db, err := l.s.DB()
	if err != nil {
		return err
	}
	l.c.Say("checkpointing")
	_, err = db.ExecContext(context.Background(), "pragma wal_checkpoint(truncate)")
	return err
}
