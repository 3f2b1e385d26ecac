package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/store"
)

// mapRun runs map run.
type mapRun struct {
	runFlags
	mapFlags
	checkout                    []string
	validate, mirror            string
	required, merge, failOnDead bool
	changed, dry                bool            // of a workflow file: take it as it is now; print what it does
	onlyMerge                   bool            // merge what is done of a workflow, and run nothing else
	again                       bool            // with the flags of its last run
	mirrorKnown                 map[string]bool // items of which the mirror may have files; nil: all
	mirrorJob                   string          // the job as the mirror has it; empty is that of the queue
	queueName                   string          // of the items
}

func newMapRun(g *globals) *cobra.Command { return mapRunOf(g).command() }

func mapRunOf(g *globals) *mapRun {
	return &mapRun{runFlags: runFlags{handling: handling{globals: g}, verb: "map run"}, mapFlags: mapFlags{globals: g}}
}

func (m *mapRun) command() *cobra.Command {
	cmd := m.handling.command(m.handling.described("map run"), m.do)
	fs := cmd.Flags()
	m.registerList(fs)
	m.mapFlags.register(fs)
	fs.StringVar(&m.validate, "validate", "", "a step that has to succeed on what the others committed, before it is merged")
	fs.BoolVar(&m.required, "commit-required", false, "an item of which nothing is committed has failed")
	fs.StringArrayVar(&m.checkout, "checkout", nil,
		"folder that attempts see, with the files of the folders above it; again for more (default everything)")
	fs.StringVar(&m.mirror, "mirror", "", "itemdir:FOLDER, which has a file for each item that is dead, as MapReduce keeps them")
	fs.BoolVar(&m.merge, "merge", false, "merge the branch of the job in the end, also when items died")
	fs.BoolVar(&m.failOnDead, "fail-on-dead", false, "with --merge: not when items died")
	registerChanged(fs, &m.changed)
	fs.BoolVar(&m.dry, "dry-run", false, "print what a workflow file does, and run nothing of it")
	return cmd
}

// do runs the job, and with --merge merges its branch.
func (m *mapRun) do(ctx context.Context, args []string, dash int) (err error) {
	if err := m.readWorkflow(ctx, args, dash); err != nil {
		return err
	}
	if m.dry {
		return m.flow.dryRun(ctx)
	}
	validate, err := m.parseValidate()
	if err != nil {
		return err
	}
	folder, is := app.ItemFolder(m.mirror)
	switch {
	case m.mirror == "":
	case !is || folder == "":
		return usagef("--mirror is %q: give itemdir:FOLDER", m.mirror)
	default:
		m.alongside = func(ctx context.Context, st store.Store) (func() error, error) { return m.mirrorTo(ctx, folder, st) }
	}
	var job *worktree.Job
	m.after = m.goOn
	m.around = func(c *runner.Config) {
		m.mapFlags.job = c.Job
		c.Job = mapreduce.QueueOf(c.Job)
		c.Validate = validate
		if m.flow != nil {
			m.flow.configure(c)
		}
		c.Workplace = func(ctx context.Context, d *nixie.Delivery) (runner.Workplace, error) {
			a, err := mapreduce.New(mapreduce.Config{Job: job, CommitRequired: m.required}).Begin(ctx, d)
			if a == nil {
				return nil, err
			}
			return a, nil
		}
	}
	m.queue = func(ctx context.Context, st store.Store) (queue string, of []nixie.Header, err error) {
		queue, err = m.chooseQueue(ctx, job, st)
		m.queueName = queue
		return queue, []nixie.Header{{Name: mapreduce.HeaderRepository, Value: job.Repository()}}, err
	}
	m.begin = func(ctx context.Context) (err error) {
		c := m.mapFlags.config()
		c.Parallel, c.Checkout = m.parallel, m.checkout
		if job, err = worktree.Open(ctx, c); err != nil {
			return err
		}
		if m.flow != nil {
			return m.flow.keep(job)
		}
		return refuseOtherFile(job, m.mapFlags.job)
	}
	if m.accepted = func() error { return nil }; !m.again {
		m.accepted = func() error { return m.remember(job, args, dash) }
	}
	ended := m.run(ctx, args, dash)
	if job == nil {
		return ended
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	m.tellBranch(ctx, job)
	return m.deliver(ctx, job, ended)
}

// deliver merges the branch after a run, or prints the command that does.
func (m *mapRun) deliver(ctx context.Context, job *worktree.Job, ended error) error {
	var code exit
	if ended != nil && (!errors.As(ended, &code) || code != ExitPartly || m.failOnDead) {
		return ended
	}
	if m.flow != nil && m.merge {
		done, err := m.flow.mergesItself(ctx)
		if err != nil || done {
			return errors.Join(err, ended)
		}
	}
	if !m.merge {
		fmt.Fprintf(m.Err, "  %s map merge --repo %s --job %s   # brings branch %s into the checkout\n",
			m.self(), quote(m.repo), quote(m.mapFlags.job), job.Branch())
		return ended
	}
	if err := job.Deliver(ctx); err != nil {
		return errors.Join(err, ended)
	}
	fmt.Fprintf(m.Err, "branch %s is merged\n", job.Branch())
	return ended
}

// tellBranch brings the branch of the job up to date, and tells why it stays behind.
func (m *mapRun) tellBranch(ctx context.Context, job *worktree.Job) {
	folder, err := job.Follow(context.WithoutCancel(ctx))
	switch {
	case err != nil:
		fmt.Fprintf(m.Err, "branch %s stays where it is: %s\n", job.Branch(), escapeLine(err.Error()))
	case folder != "":
		fmt.Fprintf(m.Err, "branch %s stays where it is, as %s has it checked out; nixie map merge brings all of it\n", job.Branch(),
			escapeLine(folder))
	}
}

// remember saves how the job is run, for nixie map resume.
func (m *mapRun) remember(job *worktree.Job, args []string, dash int) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	r := worktree.Invocation{Folder: here, Store: m.store, List: args[0], Flags: m.given}
	if m.flow != nil {
		r.Items = m.flow.items
	}
	if !slices.Contains(m.given, "--job") { // its name comes from the list
		r.Flags = append(r.Flags, "--job", m.mapFlags.job)
	}
	if dash >= 0 {
		r.Args = args[dash:]
	}
	return job.SaveInvocation(r)
}

// goOn prints the commands that go on with a job that is not done.
func (m *mapRun) goOn(w io.Writer, s runner.Summary) {
	job := jobFlag{m.mapFlags.job, m.repo}.words(m.mapFlags.globals)
	switch {
	case s.Unfinished > 0:
		fmt.Fprintf(w, "  %s   # goes on\n", m.typed("map", "resume", job))
		if s.Dead > 0 {
			fmt.Fprintf(w, "  %s   # the dead, once it is repaired\n", m.retryDead(job, s))
		}
	case s.Dead > 0:
		fmt.Fprintf(w, "  %s\n", m.typed("map", "dlq", "analyze", job))
		fmt.Fprintf(w, "  %s\n", m.retryDead(job, s))
	}
}

// retryDead returns the command that sends the dead items of a job back and runs them.
func (m *mapRun) retryDead(job string, s runner.Summary) string {
	return m.typed("map", "dlq", "retry", job, "--reason", "fixed", "--yes"+forceFor(s))
}

// parseValidate reads --validate.
func (m *mapRun) parseValidate() (*command.Step, error) {
	if m.validate == "" {
		return nil, nil //nolint:nilnil // none
	}
	s, err := command.ParseStep(m.validate)
	return &s, err
}
