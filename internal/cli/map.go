package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/workflow"
	"github.com/nixie-go/nixie/mapreduce/worktree"
)

func newMap(g *globals) *cobra.Command {
	return g.family("map", newMapRun(g), newMapResume(g), newMapCancel(g), newMapList(g), newMapShow(g), newMapLogs(g), newMapResults(g),
		newMapDLQ(g), newMapKept(g), newMapOpen(g), newMapMerge(g), newMapClean(g), newMapValidate(g))
}

// mapFlags name the repository and the job.
type mapFlags struct {
	*globals
	repo, job string
}

func (m *mapFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&m.repo, "repo", ".", "folder in the git repository")
}

// config returns the configuration of the job.
func (m *mapFlags) config() worktree.Config {
	return worktree.Config{Repo: m.repo, State: m.worktrees(), Job: m.job, Environ: config.Inherited()}
}

// mapDone is the JSON of map merge and map clean.
type mapDone struct {
	Job     string `json:"job"`
	Branch  string `json:"branch"`
	Merged  bool   `json:"merged"`
	Removed bool   `json:"removed"`
}

// done prints what was done to a job.
func (m *mapFlags) done(d mapDone, human string) error {
	return m.object(d, func(w io.Writer) { fmt.Fprintln(w, human) })
}

// mapVerb completes a command on a job that exists.
func mapVerb(g *globals, cmd *cobra.Command, do func(context.Context, *mapFlags, *worktree.Job) error) *cobra.Command {
	m := &mapFlags{globals: g}
	var name jobFlag
	g.command(cmd, func(ctx context.Context, _ []string) (err error) {
		m.job, m.repo = name.job, name.repo
		c := m.config()
		c.Existing = true
		job, err := worktree.Open(ctx, c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, job.Close()) }()
		return do(ctx, m, job)
	}, &name)
	return cmd
}

func newMapMerge(g *globals) *cobra.Command {
	return mapVerb(g, g.described("map merge"), func(ctx context.Context, m *mapFlags, job *worktree.Job) error {
		kept, is, err := job.Workflow()
		if err != nil {
			return err
		}
		if is {
			file, err := workflow.Parse(kept.Path, []byte(kept.Text), g.Env(agentVariable))
			if err == nil && file.Merge != nil {
				a := again{globals: g, jobFlag: jobFlag{m.job, m.repo}, stored: true, more: []string{"--merge"}, only: true}
				return errors.Join(job.Close(), a.run(ctx))
			}
			if err != nil {
				return err
			}
		}
		if err := job.Deliver(ctx); err != nil {
			return err
		}
		return m.done(mapDone{Job: m.job, Branch: job.Branch(), Merged: true}, "branch "+job.Branch()+" is merged")
	})
}

func newMapList(g *globals) *cobra.Command {
	return g.command(g.described("map list"), func(context.Context, []string) error {
		return listed(g, "", []column[worktree.Summary]{
			{name: "job", kind: flex}, {name: "branch", kind: flex}, {name: "kept", kind: number}, {name: "repo", kind: flex},
			{name: "queue", show: asWide, kind: flex}, {name: "target", show: asWide}, {name: "base", show: asWide},
		})(worktree.Jobs(g.worktrees()))
	})
}

func newMapKept(g *globals) *cobra.Command {
	var name jobFlag
	return g.command(g.described("map kept"), func(ctx context.Context, _ []string) error {
		job, err := g.known(ctx, name)
		if err != nil {
			return err
		}
		return listed(g, "", []column[worktree.Kept]{
			{name: "item", kind: flex}, {name: "lease"}, {name: "path", kind: flex}, {name: "branch", show: asWide, kind: flex},
			{name: "start", show: asWide},
		})(job.Kept())
	}, &name)
}

func newMapOpen(g *globals) *cobra.Command {
	var name jobFlag
	return g.command(g.described("map open", cobra.ExactArgs(1)), func(ctx context.Context, args []string) error {
		kept, found, err := g.keptOf(ctx, name, args[0])
		if err == nil && !found {
			err = nixie.Errorf(nixie.CodeNotFound, "no worktree of item %s was kept: nixie map kept %s lists those that were",
				args[0], name.words(g))
		}
		return one(g, func(w io.Writer, k *worktree.Kept) { fmt.Fprintf(w, "cd %s\n", quote(k.Path)) })(kept, err)
	}, &name)
}

// keptOf finds the kept worktree of an item, also while its job runs.
func (g *globals) keptOf(ctx context.Context, of jobFlag, item string) (kept worktree.Kept, found bool, err error) {
	job, err := g.known(ctx, of)
	if err != nil {
		return kept, false, err
	}
	all, err := job.Kept()
	if i := slices.IndexFunc(all, func(k worktree.Kept) bool { return k.Item == item }); i >= 0 {
		return all[i], true, err
	}
	return kept, false, err
}

func newMapClean(g *globals) *cobra.Command {
	var force bool
	cmd := mapVerb(g, g.described("map clean"), func(ctx context.Context, m *mapFlags, job *worktree.Job) error {
		merged, err := job.Delivered(ctx)
		if err != nil && !force {
			return err
		}
		if err := job.Clean(ctx, force); err != nil {
			return err
		}
		return m.done(mapDone{Job: m.job, Branch: job.Branch(), Merged: merged, Removed: true}, "job "+escapeLine(m.job)+" is removed")
	})
	cmd.Flags().BoolVar(&force, "force", false, "also what is not merged")
	return cmd
}

func newMapResults(g *globals) *cobra.Command {
	var name jobFlag
	return g.command(g.described("map results"), func(ctx context.Context, _ []string) error {
		job, err := g.known(ctx, name)
		if err != nil {
			return err
		}
		return rows(g, "", []column[worktree.Result]{
			{name: "item", kind: flex}, {name: "result", kind: flex}, {name: "commit", show: asWide}, {name: "lease", show: asWide},
		}, job.Results())
	}, &name)
}
