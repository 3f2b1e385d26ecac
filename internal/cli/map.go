package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/mapreduce/worktree"
)

func newMap(g *globals) *cobra.Command {
	cmd := family("map", "Change a git repository item by item",
		"Runs a command for each item of a list, each in a worktree of its own of a git\nrepository, and joins what they commit on a branch.",
		newMapRun(g), newMapMerge(g), newMapKept(g), newMapClean(g))
	cmd.Hidden = true // not promised yet: its flags may change
	return cmd
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
	return worktree.Config{Repo: m.repo, State: filepath.Join(config.StateFolder(m.Env), "worktrees"), Job: m.job, Environ: config.Inherited()}
}

// mapRun is nixie map run.
type mapRun struct {
	runFlags
	mapFlags
	required, merge, failOnDead bool
	checkout                    []string
}

func newMapRun(g *globals) *cobra.Command {
	m := &mapRun{runFlags: runFlags{handling: handling{globals: g}, verb: "map run"}, mapFlags: mapFlags{globals: g}}
	cmd := &cobra.Command{
		Use:   "run ITEMS [flags] -- COMMAND [ARG…]",
		Short: "Run a command for each item, each in a worktree of its own",
		Long: `Runs COMMAND once for each item of ITEMS, as nixie run does, but each attempt in a
worktree of its own of the repository. What an attempt commits is merged into the
branch nixie/JOB, one merge for each item; the checkout is as it was until nixie map
merge, or --merge. The same command again goes on where it was, and merges nothing
twice.

An item has failed if its command has; if it changed files and made no commit, or
made none at all with --commit-required (reason no-commit); if its commits and those
of others cannot be joined (merge-conflict); and if there is no worktree to be had
(worktree). The worktree of its last failure is kept as it was: nixie dlq show says
where, nixie map kept lists them.

No hook, filter or setting of the repository runs in the merges. A repository with
submodules, LFS or links that lead out of it is refused, and so are changes that are
not committed: no attempt would see them.

Items are those of the queue mapreduce/JOB. For how they are read, what the command
gets and how it says how it went, see nixie run.`,
		Example: `  git ls-files '*.go' > files.txt
  nixie map run files.txt --repo . --job fmt -- sh -c 'gofmt -w "$0" && git commit -qam "gofmt $0"' {line}
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
	fs.BoolVar(&m.required, "commit-required", false, "an item of which nothing is committed has failed")
	fs.StringArrayVar(&m.checkout, "checkout", nil, "folder that attempts see, beside the files above it; again for more (default everything)")
	fs.BoolVar(&m.merge, "merge", false, "merge the branch of the job in the end, also when items died")
	fs.BoolVar(&m.failOnDead, "fail-on-dead", false, "with --merge: not when items died")
	return cmd
}

// do runs the job, and merges its branch if it is told to.
func (m *mapRun) do(ctx context.Context, args []string, dash int) (err error) {
	list, err := m.listOf(args, dash)
	if err != nil {
		return err
	}
	if m.runFlags.job == "" {
		if list == stdinList {
			return usagef("standard input has no name: give --job NAME")
		}
		abs, err := filepath.Abs(list)
		if err != nil {
			return err
		}
		m.runFlags.job = runner.DefaultJob(abs)
	}
	m.mapFlags.job = m.runFlags.job
	c := m.mapFlags.config()
	c.Most, c.Checkout = m.parallel, m.checkout
	job, err := worktree.Open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	work := mapreduce.New(mapreduce.Config{Job: job, CommitRequired: m.required})
	m.around = func(c *runner.Config) {
		c.Job = mapreduce.Queue(m.mapFlags.job)
		c.Workplace = func(ctx context.Context, d *nixie.Delivery) (runner.Workplace, error) {
			a, err := work.Begin(ctx, d.Key, d.Lease.Number)
			if a == nil {
				return nil, err
			}
			return a, nil
		}
	}
	ended := m.run(ctx, args, dash)
	var code exit
	if ended != nil && (!errors.As(ended, &code) || code != ExitPartly || m.failOnDead) {
		return ended
	}
	if !m.merge {
		fmt.Fprintf(m.Err, "  nixie map merge --repo %s --job %s   # brings branch %s into the checkout\n", quote(m.repo), quote(m.mapFlags.job), job.Branch())
		return ended
	}
	return errors.Join(m.mapFlags.deliver(ctx, job), ended)
}

// deliver merges the branch of a job, and says so.
func (m *mapFlags) deliver(ctx context.Context, job *worktree.Job) error {
	if err := job.Deliver(ctx); err != nil {
		return err
	}
	fmt.Fprintf(m.Err, "branch %s is merged\n", job.Branch())
	return nil
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
	}, func(ctx context.Context, m *mapFlags, job *worktree.Job) error { return m.deliver(ctx, job) })
}

func newMapKept(g *globals) *cobra.Command {
	cmd := mapVerb(g, &cobra.Command{
		Use:   "kept --job JOB",
		Short: "List the worktrees of items that failed",
		Long: `Lists the worktrees that were kept, one for each item: as its last attempt left it,
with what was not committed. They go with nixie map clean.`,
		Example: `  cd "$(nixie map kept --job fmt -o jsonl | head -n 1 | jq -r .path)"`,
	}, func(_ context.Context, m *mapFlags, job *worktree.Job) error {
		kept, err := job.Kept()
		if err != nil {
			return err
		}
		out := newListing(m.globals, []column[worktree.Kept]{
			{name: "item", kind: flex}, {name: "lease"}, {name: "path", kind: flex}, {name: "branch", show: asWide, kind: flex}, {name: "start", show: asWide},
		})
		for _, k := range kept {
			if err := out.add(k); err != nil {
				return err
			}
		}
		return out.close()
	})
	return cmd
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
		if err := job.Clean(ctx, force); err != nil {
			return err
		}
		fmt.Fprintf(m.Err, "job %s is removed\n", escapeLine(strings.TrimSpace(m.job)))
		return nil
	})
	cmd.Flags().BoolVar(&force, "force", false, "also what is not merged")
	return cmd
}
