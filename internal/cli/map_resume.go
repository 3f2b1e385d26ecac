package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// again runs a job once more with the flags of its last run, except for some.
type again struct {
	*globals
	jobFlag
	parallel int
	attempts int             // of each item; 0: as in the last run
	stored   bool            // run only items that are in the store
	more     []string        // further flags
	only     bool            // merge what is done, and run nothing else
	folder   string          // of items; it is kept up to date with the letters of those in it
	items    map[string]bool // those of the folder
	listed   string          // the queue of the job as the folder has it
}

func (a *again) registerRun(fs *pflag.FlagSet) {
	fs.IntVarP(&a.parallel, "parallel", "p", 0, "commands at once (default as the job was run last)")
	alias(fs, "parallel", "jobs", "j")
}

// run runs the job in the folder and with the flags of its last run.
func (a *again) run(ctx context.Context) error {
	last, err := a.last(ctx)
	if err != nil {
		return err
	}
	job, err := a.known(ctx, a.jobFlag)
	if err != nil {
		return err
	}
	about, err := job.Summary()
	if err != nil {
		return err
	}
	if err := os.Chdir(last.Folder); err != nil {
		return nixie.Errorf(nixie.CodeNotFound, "job %s was run in a folder that cannot be entered now: %w", a.job, err)
	}
	stdin := last.List == stdinList || last.Items == stdinList
	if stdin && !a.stored {
		fmt.Fprintln(a.Err, "its list was standard input: only items that were taken in are run")
	}
	a.store = last.Store
	m := mapRunOf(a.globals)
	m.again, m.onlyMerge, m.mix, m.stored = true, a.only, true, a.stored || stdin
	cmd := m.command()
	words := append(append([]string{last.List}, last.Flags...), a.more...)
	if last.Items != "" {
		words = slices.Insert(words, 1, last.Items)
	}
	if a.parallel != 0 {
		words = append(words, "--parallel", strconv.Itoa(a.parallel))
	}
	if a.attempts != 0 {
		words = append(words, "--max-attempts", strconv.Itoa(a.attempts))
	}
	if len(last.Args) > 0 {
		words = append(append(words, "--"), last.Args...)
	}
	if err := cmd.ParseFlags(words); err != nil {
		return err
	}
	if _, err := os.Stat(m.repo); err != nil { // it was moved
		m.repo = about.Repo
	}
	if a.folder != "" {
		m.mirror, m.mirrorKnown, m.mirrorJob = "itemdir:"+a.folder, a.items, mapreduce.JobOf(a.listed)
	}
	cmd.SetContext(ctx)
	return cmd.RunE(cmd, cmd.Flags().Args())
}

// last returns the last run of the job.
func (a *again) last(ctx context.Context) (last worktree.Invocation, err error) {
	job, err := a.known(ctx, a.jobFlag)
	if err != nil {
		return last, err
	}
	last, err = job.Invocation()
	if err == nil && a.store != "" && a.store != last.Store {
		err = usagef("job %s has its items in another store, %s: leave --store out", a.job, orDash(app.Shown(last.Store)))
	}
	return last, err
}

func newMapResume(g *globals) *cobra.Command {
	a := &again{globals: g}
	var name jobFlag
	var merge, changed bool
	cmd := g.command(g.described("map resume"), func(ctx context.Context, _ []string) error {
		a.jobFlag = name
		if merge {
			a.more = append(a.more, "--merge")
		}
		if changed {
			a.more = append(a.more, "--changed")
		}
		if err := a.resumeQueue(ctx); err != nil {
			return err
		}
		return a.run(ctx)
	}, &name)
	a.registerRun(cmd.Flags())
	cmd.Flags().BoolVar(&merge, "merge", false, "merge the branch of the job in the end, also when items died")
	registerChanged(cmd.Flags(), &changed)
	return cmd
}

// resumeQueue takes back that a job was canceled.
func (a *again) resumeQueue(ctx context.Context) error {
	last, err := a.last(ctx)
	if err != nil {
		return err
	}
	err = a.at(last.Store).visit(func(o *office.Office) error {
		queues, err := a.jobQueues(ctx, o, a.jobFlag)
		if err != nil {
			return err
		}
		paused, err := known(ctx, o, queues)
		paused = slices.DeleteFunc(paused, func(q store.QueueInfo) bool { return !q.Settings.Paused })
		if err != nil || len(paused) == 0 {
			return err
		}
		_, err = o.Resume(ctx, names(paused), "nixie map resume")
		return err
	})
	if nixie.CodeOf(err) == nixie.CodeNotFound { // it was killed before it had begun
		return nil
	}
	return err
}

// known returns those of some queues that a store has.
func known(ctx context.Context, o *office.Office, queues []string) ([]store.QueueInfo, error) {
	all, err := o.Queues(ctx)
	return slices.DeleteFunc(all, func(q store.QueueInfo) bool { return !slices.Contains(queues, q.Name) }), err
}

// names returns the names of queues.
func names(queues []store.QueueInfo) (all []string) {
	for i := range queues {
		all = append(all, queues[i].Name)
	}
	return all
}

// mapCanceled is the JSON of map cancel.
type mapCanceled struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
}

func newMapCancel(g *globals) *cobra.Command {
	var name jobFlag
	var reason reasonFlag
	return g.inOffice(g.described("map cancel"), func(ctx context.Context, o *office.Office, _ []string) error {
		queues, err := g.jobQueues(ctx, o, name)
		if err != nil {
			return err
		}
		begun, err := known(ctx, o, queues)
		if err != nil {
			return err
		}
		if len(begun) == 0 {
			_, err := o.Queue(ctx, queues[0]) // says that it is not there
			return err
		}
		if _, err := o.Pause(ctx, names(begun), "canceled: "+reason.text); err != nil {
			return err
		}
		return g.object(mapCanceled{name.job, reason.text}, func(w io.Writer) {
			fmt.Fprintf(w, "job %s begins no more attempts; nixie map resume %s goes on with it\n", escapeLine(name.job),
				name.words(g))
		})
	}, &name, &reason)
}
