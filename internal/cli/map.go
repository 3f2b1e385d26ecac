package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/mapreduce/worktree"
)

func newMap(g *globals) *cobra.Command {
	return family("map", "Change a git repository item by item",
		"Runs commands for each item of a list, each in a worktree of its own of a git\nrepository, and joins what they commit on a branch.",
		newMapRun(g), newMapList(g), newMapMerge(g), newMapKept(g), newMapOpen(g), newMapClean(g))
}

// mapFlags say on which repository a job works.
type mapFlags struct {
	*globals
	repo, job string
}

func (m *mapFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&m.repo, "repo", ".", "folder in the git repository")
}

// config is the job of that name.
func (m *mapFlags) config() worktree.Config {
	return worktree.Config{Repo: m.repo, State: m.worktrees(), Job: m.job, Environ: config.Inherited()}
}

// worktrees is the folder of all jobs.
func (g *globals) worktrees() string { return filepath.Join(config.StateFolder(g.Env), "worktrees") }

// mapRun is nixie map run.
type mapRun struct {
	runFlags
	mapFlags
	stepTexts, checkout         []string
	validate                    string
	required, merge, failOnDead bool
}

func newMapRun(g *globals) *cobra.Command {
	m := &mapRun{runFlags: runFlags{handling: handling{globals: g}, verb: "map run"}, mapFlags: mapFlags{globals: g}}
	cmd := &cobra.Command{
		Use:   "run ITEMS [flags] [-- COMMAND [ARG…]]",
		Short: "Run steps for each item, each in a worktree of its own",
		Long: `Runs COMMAND, or the steps, once for each item of ITEMS, as nixie run does, but each
attempt in a worktree of its own of the repository. What an attempt commits is merged
into the branch nixie/JOB, one merge for each item; the checkout is as it was until
nixie map merge, or --merge. The same command again goes on where it was, and merges
nothing twice.

A step is one of
  exec: PROGRAM ARG…   split at blanks; an argument that is {field} is replaced
  shell: SCRIPT        read by sh; the item is in its environment, in the file
                       $NIXIE_ITEM_FILE and on standard input, and never in the script
  agent: PROGRAM ARG…  as exec; what it writes to $NIXIE_LOG_FILE is kept with a failure
They run one after the other until one fails. Then come the check that something was
committed, --validate, and the merge.

An item has failed if a step has; if files were changed and no commit made, or none at
all with --commit-required (reason no-commit); if --validate fails (validation); if its
commits and those of others cannot be joined (merge-conflict); and if there is no
worktree to be had (worktree). The worktree of its last failure is kept as it was: nixie
dlq show says where, nixie map kept lists them.

No hook, filter or setting of the repository runs in the merges. A repository with
submodules, LFS or links that lead out of it is refused, and so are changes that are
not committed: no attempt would see them.

Items are those of the queue mapreduce/JOB. For how they are read, what the command
gets and how it says how it went, see nixie run.`,
		Example: `  git ls-files '*.go' > files.txt
  nixie map run files.txt --repo . --job fmt -- sh -c 'gofmt -w "$0" && git commit -qam "gofmt $0"' {line}
  nixie map run files.txt --job fix --commit-required --step 'exec: gofmt -w {line}' \
      --step 'shell: git commit -qam "gofmt $NIXIE_FIELD_LINE"' --validate 'shell: go vet ./...'
  nixie map merge --job fmt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			m.readFlags(cmd.Flags())
			return m.interrupted(cmd.Context(), m.do(cmd.Context(), args, cmd.ArgsLenAtDash()))
		},
	}
	fs := cmd.Flags()
	m.registerList(fs)
	m.mapFlags.register(fs)
	fs.StringArrayVar(&m.stepTexts, "step", nil, "instead of COMMAND: 'exec: PROGRAM ARG…', 'shell: SCRIPT' or 'agent: PROGRAM ARG…'; again for the next")
	fs.StringVar(&m.validate, "validate", "", "a step that has to succeed on what the others committed, before it is merged")
	fs.BoolVar(&m.required, "commit-required", false, "an item of which nothing is committed has failed")
	fs.StringArrayVar(&m.checkout, "checkout", nil, "folder that attempts see, beside the files above it; again for more (default everything)")
	fs.BoolVar(&m.merge, "merge", false, "merge the branch of the job in the end, also when items died")
	fs.BoolVar(&m.failOnDead, "fail-on-dead", false, "with --merge: not when items died")
	return cmd
}

// do runs the job, and merges its branch if it is told to.
func (m *mapRun) do(ctx context.Context, args []string, dash int) (err error) {
	validate, err := m.parseSteps()
	if err != nil {
		return err
	}
	var job *worktree.Job
	m.around = func(c *runner.Config) {
		m.mapFlags.job = c.Job
		c.Job = mapreduce.Queue(c.Job)
		if len(m.steps) > 0 {
			c.Steps = m.steps
		}
		c.Validate = validate
		c.Workplace = func(ctx context.Context, d *nixie.Delivery) (runner.Workplace, error) {
			a, err := mapreduce.New(mapreduce.Config{Job: job, CommitRequired: m.required}).Begin(ctx, d.Key, d.Lease.Number)
			if a == nil {
				return nil, err
			}
			return a, nil
		}
	}
	m.begin = func(ctx context.Context) (err error) {
		c := m.mapFlags.config()
		c.Most, c.Checkout = m.parallel, m.checkout
		job, err = worktree.Open(ctx, c)
		return err
	}
	ended := m.run(ctx, args, dash)
	if job == nil {
		return ended
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	return m.deliver(ctx, job, ended)
}

// deliver merges the branch of a job that has ended so, or says how to.
func (m *mapRun) deliver(ctx context.Context, job *worktree.Job, ended error) error {
	var code exit
	if ended != nil && (!errors.As(ended, &code) || code != ExitPartly || m.failOnDead) {
		return ended
	}
	if !m.merge {
		fmt.Fprintf(m.Err, "  nixie map merge --repo %s --job %s   # brings branch %s into the checkout\n", quote(m.repo), quote(m.mapFlags.job), job.Branch())
		return ended
	}
	if err := job.Deliver(ctx); err != nil {
		return errors.Join(err, ended)
	}
	fmt.Fprintf(m.Err, "branch %s is merged\n", job.Branch())
	return ended
}

// parseSteps reads --step and --validate.
func (m *mapRun) parseSteps() (validate *command.Step, err error) {
	for _, text := range m.stepTexts {
		s, err := command.ParseStep(text)
		if err != nil {
			return nil, err
		}
		m.steps = append(m.steps, s)
	}
	if m.validate == "" {
		return nil, nil
	}
	s, err := command.ParseStep(m.validate)
	return &s, err
}

// mapDone is what became of a job.
type mapDone struct {
	Job     string `json:"job"`
	Branch  string `json:"branch"`
	Merged  bool   `json:"merged"`
	Removed bool   `json:"removed"`
}

// done says what became of a job.
func (m *mapFlags) done(d mapDone, human string) error {
	return m.object(d, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, human)
		return err
	})
}

// mapVerb makes a command on a job that is there.
func mapVerb(g *globals, cmd *cobra.Command, do func(context.Context, *mapFlags, *worktree.Job) error) *cobra.Command {
	m := &mapFlags{globals: g}
	m.register(cmd.Flags())
	cmd.Flags().StringVar(&m.job, "job", "", "name of the job")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if m.job == "" {
			return usagef("--job is empty: name the job, as nixie map run did")
		}
		c := m.config()
		c.Existing = true
		job, err := worktree.Open(cmd.Context(), c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, job.Close()) }()
		return do(cmd.Context(), m, job)
	}
	return cmd
}

func newMapMerge(g *globals) *cobra.Command {
	return mapVerb(g, &cobra.Command{
		Use:   "merge --job JOB",
		Short: "Merge the branch of a job into the checkout",
		Long: `Merges the branch nixie/JOB into the branch that was checked out when the job began.
It has to be checked out now, without changes that are not committed. A conflict
leaves everything as it was.`,
		Example: `  nixie map merge --repo ~/shop --job fmt`,
	}, func(ctx context.Context, m *mapFlags, job *worktree.Job) error {
		if err := job.Deliver(ctx); err != nil {
			return err
		}
		return m.done(mapDone{Job: m.job, Branch: job.Branch(), Merged: true}, "branch "+job.Branch()+" is merged")
	})
}

func newMapList(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the jobs that have worktrees",
		Long: `Lists the jobs of nixie map that were begun here and not removed by nixie map clean,
with the branch of each and how many worktrees of items that failed it keeps. How its
items stand is what nixie queue show mapreduce/JOB tells.`,
		Example: `  nixie map list -o wide`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			jobs, err := worktree.Jobs(g.worktrees())
			if err != nil {
				return err
			}
			return listAll(g, jobs, []column[worktree.Summary]{
				{name: "job", kind: flex}, {name: "branch", kind: flex}, {name: "kept", kind: number}, {name: "repo", kind: flex},
				{name: "target", show: asWide}, {name: "base", show: asWide},
			})
		},
	}
}

// listAll prints what is known already.
func listAll[V any](g *globals, all []V, columns []column[V]) error {
	out := newListing(g, columns)
	for _, v := range all {
		if err := out.add(v); err != nil {
			return err
		}
	}
	return out.close()
}

// keptFlag is the flag of what looks at the worktrees that were kept.
func keptFlag(cmd *cobra.Command, job *string) *cobra.Command {
	cmd.Flags().StringVar(job, "job", "", "name of the job")
	return cmd
}

// kept lists the worktrees that were kept of a job, also while it runs.
func (g *globals) kept(job string) ([]worktree.Kept, error) {
	if job == "" {
		return nil, usagef("--job is empty: name the job, as nixie map run did")
	}
	return worktree.KeptOf(g.worktrees(), job)
}

func newMapKept(g *globals) *cobra.Command {
	var job string
	return keptFlag(&cobra.Command{
		Use:   "kept --job JOB",
		Short: "List the worktrees of items that failed",
		Long: `Lists the worktrees that were kept, one for each item: as its last attempt left it,
with what was not committed. They go when the item succeeds, and with nixie map clean.`,
		Example: `  nixie map kept --job fmt -o wide`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			kept, err := g.kept(job)
			if err != nil {
				return err
			}
			return listAll(g, kept, []column[worktree.Kept]{
				{name: "item", kind: flex}, {name: "lease"}, {name: "path", kind: flex}, {name: "branch", show: asWide, kind: flex}, {name: "start", show: asWide},
			})
		},
	}, &job)
}

func newMapOpen(g *globals) *cobra.Command {
	var job string
	return keptFlag(&cobra.Command{
		Use:   "open ITEM --job JOB",
		Short: "Say how to get into the worktree of an item that failed",
		Long: `Prints the command that changes into the worktree that was kept of an item, for a shell
to read.`,
		Example: `  eval "$(nixie map open src/main.go --job fmt)"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := g.kept(job)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(all, func(k worktree.Kept) bool { return k.Item == args[0] })
			if at < 0 {
				return nixie.Errorf(nixie.CodeNotFound, "no worktree of item %s was kept: nixie map kept --job %s lists those that were", args[0], job)
			}
			return g.object(all[at], func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "cd %s\n", quote(all[at].Path))
				return err
			})
		},
	}, &job)
}

func newMapClean(g *globals) *cobra.Command {
	var force bool
	cmd := mapVerb(g, &cobra.Command{
		Use:   "clean --job JOB",
		Short: "Remove what a job made: worktrees and branches",
		Long: `Removes the worktrees of a job, also those that were kept, its branches and its notes.
What is not merged is lost only with --force. Its items and letters stay in the store.`,
		Example: `  nixie map clean --repo ~/shop --job fmt`,
	}, func(ctx context.Context, m *mapFlags, job *worktree.Job) error {
		merged, err := job.Delivered(ctx)
		if err == nil {
			err = job.Clean(ctx, force)
		}
		if err != nil {
			return err
		}
		return m.done(mapDone{Job: m.job, Branch: job.Branch(), Merged: merged, Removed: true}, "job "+escapeLine(m.job)+" is removed")
	})
	cmd.Flags().BoolVar(&force, "force", false, "also what is not merged")
	return cmd
}
