package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
)

func newMapDLQ(g *globals) *cobra.Command {
	return family("dlq", "Look at the items of a job that died, and run them again",
		`The commands of nixie dlq, about the letters of one job: that of --job, or the only one
that has any. An ITEM is named by its ID, or by that of its letter. With
--store itemdir:FOLDER they are about the items in a folder.`,
		mapVerbs(newDLQList(g, &jobLetters{globals: g}),
			renamed(newDLQShow(g, &jobLetters{globals: g}), "inspect ITEM", "show"),
			newDLQAnalyze(g, &jobLetters{globals: g}), newMapRetry(g),
			newDLQExport(g, &jobLetters{globals: g}),
			newDLQPurge(g, &jobLetters{globals: g}),
			newDLQStats(g, &jobLetters{globals: g}),
			newMapClear(g))...)
}

// mapExamples are those of nixie map dlq, by verb.
var mapExamples = map[string]string{
	"list": `  nixie map dlq list --job fmt --eligible
  nixie map dlq list --where 'item.priority > 5 && failure_count < 3'`,
	"inspect": `  nixie map dlq inspect src/main.go --job fmt
  nixie map dlq inspect src/main.go -o json | jq .history[-1]`,
	"analyze": `  nixie map dlq analyze --job fmt`,
	"export": `  nixie map dlq export --job fmt --layout mapreduce --format json
  nixie map dlq export --job fmt --format itemdir --out ~/dlq/shop`,
	"purge": `  nixie map dlq purge --job fmt --older-than 30d --reason 'kept long enough' --yes`,
	"stats": `  nixie map dlq stats --job fmt`,
}

// mapVerbs gives commands on letters the examples that fit here.
func mapVerbs(all ...*cobra.Command) []*cobra.Command {
	for _, cmd := range all {
		if text, ok := mapExamples[cmd.Name()]; ok {
			cmd.Example = text
		}
	}
	return all
}

// renamed gives a command another name; it goes by the old one as well.
func renamed(cmd *cobra.Command, use, old string) *cobra.Command {
	cmd.Use, cmd.Aliases = use, []string{old}
	return cmd
}

// mapRetry is map dlq retry: a redrive, and a run after it.
type mapRetry struct {
	again
	redrive *letterBulk
	retries int
}

func newMapRetry(g *globals) *cobra.Command {
	l := &letterBulk{
		bulk: bulk{globals: g, required: true}, event: nixie.OnRedrive, done: "redriven", choice: letterFlags{of: &jobLetters{globals: g}},
	}
	r := &mapRetry{again: again{globals: g, stored: true}, redrive: l}
	cmd := g.command(&cobra.Command{
		Use:   "retry [ITEM…]",
		Short: "Run items that died again, to their end",
		Long: `Sends the letters of a job on their way again, all or those that are chosen, as nixie
dlq redrive does, and runs the job as nixie map run did last: its steps, in its
repository. An item that succeeds is merged, and its letter is resolved; of one that
fails again the history is longer. What is not redrivable or needs a review goes with
--force only.

With --store itemdir:FOLDER the items of the job in that folder are taken into its store
first, but for those that it has; a file goes once its item has succeeded, and says more
if it failed again.

The job must be known here. Where it is not, nixie dlq redrive queues its letters, and
nixie map run with its name runs them.

Exit codes: 0 nothing is dead any more, 5 something is or was skipped, 130 interrupted:
the same command, or nixie map resume, goes on.`,
		Example: `  nixie map dlq retry --job fmt --eligible --reason 'the formatter is mended' --yes
  nixie map dlq retry --job fmt --where 'item.priority > 5' --parallel 10 --max-retries 3 --reason again --yes
  nixie map dlq retry src/main.go --job fmt --force --reason 'conflict is gone' --yes`,
		Args: cobra.ArbitraryArgs,
	}, r.do, l)
	fs := cmd.Flags()
	l.target = &redriveTarget{flags: fs, stopAfter: "none", stop: redrive.Stop{Share: -1}} // no worker runs yet
	r.register(fs)
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
	if !r.forPeople() && !r.redrive.dry { // programs get one document, that of the run
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

// find looks which job is meant, and how it is run: what cannot be run is not redriven.
// The items of a folder are taken in first, and the run keeps the folder in step.
func (r *mapRetry) find(ctx context.Context) error {
	of := r.redrive.choice.of
	if of.job == "" {
		if err := r.visit(func(o *office.Office) error {
			_, err := of.queue(ctx, o)
			return err
		}); err != nil {
			return err
		}
	}
	r.job = of.job
	folder, is := r.itemFolder()
	if is {
		r.store = "" // the store of the job is meant from here on
	}
	last, err := r.last()
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
	return r.takeFolder(ctx, folder, last.Store)
}

func newMapClear(g *globals) *cobra.Command {
	l := &letterBulk{
		bulk: bulk{globals: g, required: true}, event: nixie.OnDiscard, done: "given up", choice: letterFlags{of: &jobLetters{globals: g}},
	}
	return g.command(&cobra.Command{
		Use:   "clear",
		Short: "Give up all items of a job that died",
		Long: `Discards the letters of a job, all or those that are chosen: they stay, with reason and
actor, until nixie map dlq purge removes them, and the job has nothing dead any more.`,
		Example: `  nixie map dlq clear --job fmt --reason 'done by hand' --yes`,
		Args:    cobra.ArbitraryArgs,
	}, l.run, l)
}
