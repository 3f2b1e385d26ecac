package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

func newMapDLQ(g *globals) *cobra.Command {
	of := func() *jobLetters { return &jobLetters{globals: g} }
	inspect := newDLQShow(g, of())
	inspect.Use, inspect.Aliases = "inspect ITEM", []string{"show"}
	cmd := g.family("map dlq", newDLQList(g, of()), inspect, newDLQAnalyze(g, of()), newDLQExport(g, of()), newDLQPurge(g, of()),
		newDLQStats(g, of()))
	for _, c := range cmd.Commands() { // with examples about jobs
		own := g.described("map dlq " + c.Name())
		c.Example, c.Long = own.Example, cmp.Or(own.Long, c.Long)
	}
	cmd.AddCommand(newMapRetry(g), newMapClear(g))
	return cmd
}

// mapRetry runs map dlq retry: a redrive, and a run after it.
type mapRetry struct {
	again
	redrive *letterBulk
	retries int
}

func newMapRetry(g *globals) *cobra.Command {
	l := &letterBulk{
		bulk: bulk{globals: g, required: true}, event: store.OnRedrive, done: "redriven", choice: letterFlags{of: &jobLetters{globals: g}},
	}
	r := &mapRetry{again: again{globals: g, stored: true}, redrive: l}
	cmd := g.command(g.described("map dlq retry", cobra.ArbitraryArgs), r.do, l)
	fs := cmd.Flags()
	l.target = &redriveTarget{flags: fs, stopAfter: "none", stop: redrive.Stop{Share: -1}} // the run begins after the redrive
	r.registerRun(fs)
	fs.BoolVar(&l.force, "force", false, "also what is not redrivable or needs review")
	fs.IntVar(&r.retries, "max-retries", 0, "how often an item is tried again that fails again (default as the job was run last)")
	return cmd
}

func (r *mapRetry) do(ctx context.Context, args []string) error {
	if r.retries < 0 {
		return usagef("--max-retries is %d: give a positive number, or leave it out", r.retries)
	}
	if r.redrive.flags.Changed("max-retries") {
		r.attempts = r.retries + 1
	}
	if err := r.find(ctx); err != nil {
		return err
	}
	if !r.forPeople() && !r.redrive.dry { // programs get one document: the summary of the run
		quiet := *r.globals
		quiet.Out = io.Discard
		r.redrive.globals = &quiet
	}
	redriven := r.redrive.run(ctx, args)
	var code exit
	if redriven != nil && (!errors.As(redriven, &code) || code != ExitPartly) || r.redrive.dry {
		return redriven
	}
	return errors.Join(r.run(ctx), redriven)
}

// find looks for the job and for its last run, so that letters of a job that cannot run are not
// redriven. The items of a folder are taken in first, and the run keeps the folder up to date.
func (r *mapRetry) find(ctx context.Context) error {
	of := r.redrive.choice.of
	folder, is := r.itemFolder()
	if of.job == "" || is {
		if err := r.visit(func(o *office.Office) (err error) {
			r.listed, err = of.queue(ctx, o)
			return err
		}); err != nil {
			return err
		}
	}
	r.jobFlag = of.jobFlag
	if is {
		r.store = "" // from here on it is the store of the job
	}
	last, err := r.last(ctx)
	if err != nil || !is {
		return err
	}
	if r.redrive.dry {
		return usagef("--dry-run: the items of a folder have to be taken in first: nixie dlq import %s", quote(folder))
	}
	if r.folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	r.store = last.Store
	job, err := r.known(ctx, r.jobFlag)
	if err != nil {
		return err
	}
	return r.takeFolder(ctx, folder, r.listed, last.Store, job.Queue())
}

func newMapClear(g *globals) *cobra.Command {
	l := &letterBulk{
		bulk: bulk{globals: g, required: true}, event: store.OnDiscard, done: "given up", choice: letterFlags{of: &jobLetters{globals: g}},
	}
	return g.command(g.described("map dlq clear", cobra.ArbitraryArgs), l.run, l)
}
