package match

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nixie-go/nixie/bench/contest"
)

// Sizes of measurements.
const (
	firstSize  = 2000 // of a calibration, and the least it finds: below it the start of a process counts
	maxFactor  = 30   // by which a size grows in one step of it
	enough     = 4    // a calibration has to take this part of the aimed time to be believed
	pickUpSize = 420  // arrivals of the pick-up scenario
)

// bench is a run.
type bench struct {
	options
	ground Ground
	log    io.Writer
}

// compare measures everything in turns: in each round each scenario, in each
// scenario each library, every round beginning with another one.
func (p *Programme) compare(ctx context.Context, o options, log io.Writer) (_ *report, err error) {
	ground, err := p.Open(ctx, o.folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ground.Close()) }()
	b := &bench{o, ground, log}
	rep := p.newReport(o, ground)
	sizes, err := b.sizes(ctx)
	if err != nil {
		return nil, err
	}
	for round := range o.rounds {
		for _, s := range o.scenarios {
			for turn := range o.entrants {
				e := &o.entrants[(turn+round)%len(o.entrants)]
				if !e.Plays(s) {
					continue
				}
				r, err := b.measure(ctx, e, s, sizes[sizeKey{e.Name, s}])
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(log, "round %d of %d: %-13s %-13s %8d in %s\n", round+1, o.rounds, s, e.Name, r.N, r.Wall.Round(time.Millisecond))
				rep.add(s, e.Name, r)
			}
		}
	}
	rep.finish()
	return rep, nil
}

// measure runs one measurement in processes of its own.
func (b *bench) measure(ctx context.Context, e *contest.Entrant, s contest.Scenario, n int) (r contest.Result, err error) {
	place, err := b.ground.Place(ctx, s)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, place.Remove(context.WithoutCancel(ctx))) }()
	o := order{Part: open, Library: e.Name, Setup: place.Setup(), N: n}
	o.Setup.Burden = b.burden
	if _, err := start(ctx, o); err != nil {
		return r, err
	}
	parts := []part{play}
	if s.Drains() {
		parts = []part{fill, play}
	}
	var seen contest.Result
	for _, o.Part = range parts {
		if o.Part == play {
			o.Profile = b.profile
		}
		if err := place.Begin(ctx); err != nil {
			return r, err
		}
		if r, err = start(ctx, o); err != nil {
			return r, err
		}
		if err := place.End(ctx, &seen); err != nil {
			return r, err
		}
	}
	r.File, r.Indexes, r.WAL = seen.File, seen.Indexes, seen.WAL
	return r, nil
}

type sizeKey struct {
	entrant  string
	scenario contest.Scenario
}

// sizes finds how many messages each library handles in the aimed time. These
// runs warm up what is outside of the processes, too, and are checked like all
// others.
func (b *bench) sizes(ctx context.Context) (map[sizeKey]int, error) {
	sizes := map[sizeKey]int{}
	for _, s := range b.scenarios {
		for i := range b.entrants {
			e := &b.entrants[i]
			if !e.Plays(s) {
				continue
			}
			n, err := b.calibrate(ctx, e, s)
			if err != nil {
				return nil, err
			}
			sizes[sizeKey{e.Name, s}] = n
		}
	}
	return sizes, nil
}

func (b *bench) calibrate(ctx context.Context, e *contest.Entrant, s contest.Scenario) (int, error) {
	if b.size != 0 {
		return b.size, nil
	}
	if s == contest.PickUp {
		return pickUpSize, nil
	}
	for n := firstSize; ; {
		r, err := b.measure(ctx, e, s, n)
		if err != nil {
			return 0, err
		}
		fitting := max(firstSize, int(r.Rate()*b.aim.Seconds()))
		next := min(fitting, n*maxFactor, maxSize)
		if r.Wall >= b.aim/enough || next <= n {
			fmt.Fprintf(b.log, "size: %-13s %-13s %8d\n", s, e.Name, next)
			return next, nil
		}
		n = next
	}
}
