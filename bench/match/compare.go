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
	firstSize  = 2000 // of a calibration, and its least result: below it the start of a process would count
	maxFactor  = 30   // by which a size grows in one step of a calibration
	enough     = 4    // a calibration must take the aimed time divided by this
	pickUpSize = 420  // arrivals of the pick-up scenario
)

// bench is one run.
type bench struct {
	options
	host Host
	log  io.Writer
}

// compare runs the rounds. Each round runs every scenario, and each scenario every library; each
// round begins with another library.
func (p *Programme) compare(ctx context.Context, o options, log io.Writer) (_ *report, err error) {
	host, err := p.Open(ctx, o.folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	b := &bench{o, host, log}
	rep := p.newReport(o, host)
	sizes, err := b.sizes(ctx)
	if err != nil {
		return nil, err
	}
	for round := range o.rounds {
		for _, s := range o.scenarios {
			for i := range o.entrants {
				e := &o.entrants[(i+round)%len(o.entrants)]
				if !e.Plays(s) {
					continue
				}
				r, err := b.measure(ctx, e, s, sizes[sizeKey{e.Name, s}])
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(log, "round %d of %d: %-13s %-13s %8d in %s\n", round+1, o.rounds, s, e.Name, r.N,
					r.Wall.Round(time.Millisecond))
				rep.add(s, e.Name, r)
			}
		}
	}
	rep.finish()
	return rep, nil
}

// measure runs one measurement in processes of its own.
func (b *bench) measure(ctx context.Context, e *contest.Entrant, s contest.Scenario, n int) (r contest.Result, err error) {
	workspace, err := b.host.Workspace(ctx, s)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, workspace.Remove(context.WithoutCancel(ctx))) }()
	o := order{Part: open, Library: e.Name, Setup: workspace.Setup(), N: n}
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
		if err := workspace.Begin(ctx); err != nil {
			return r, err
		}
		if r, err = start(ctx, o); err != nil {
			return r, err
		}
		if err := workspace.End(ctx, &seen); err != nil {
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

// sizes finds the number of messages that each library handles in the aimed time. These runs also
// warm up the machine, and are checked like all others.
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
	if s.Waits() {
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
