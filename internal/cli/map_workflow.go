package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/internal/workflow"
	"github.com/nixie-go/nixie/mapreduce/worktree"
)

func registerChanged(fs *pflag.FlagSet, changed *bool) {
	fs.BoolVar(changed, "changed", false, "take the workflow file as it is now, and not as it was when the job was run last")
}

// isWorkflow reports whether the first argument is a workflow file.
func (m *mapRun) isWorkflow(args []string, dash int) bool {
	if len(args) == 0 || dash == 0 || items.Format(m.format) == items.Lines {
		return false
	}
	ending := filepath.Ext(args[0])
	return ending == ".yaml" || ending == ".yml"
}

// readWorkflow reads a workflow file, if one is given, and makes flags of what it says.
func (m *mapRun) readWorkflow(ctx context.Context, args []string, dash int) error {
	switch {
	case !m.isWorkflow(args, dash) && (m.changed || m.dry):
		return usagef("--changed and --dry-run are for a workflow file, FILE.yaml: leave them out")
	case !m.isWorkflow(args, dash):
		return nil
	case dash >= 0:
		return usagef("%s is a workflow file, which has its own steps: leave out -- and what follows, or --format lines reads it as a list",
			args[0])
	case len(m.stepTexts) > 0 || m.validate != "" || m.persistent:
		return usagef("%s is a workflow file, which has its own steps: leave out --step, --validate and --persistent", args[0])
	case len(args) > 2:
		return usagef("%d lists: give one after the workflow file, or none", len(args)-1)
	}
	m.readFlags()
	w := &workflowRun{m: m, only: m.onlyMerge, phases: []phaseView{}}
	if len(args) == 2 {
		w.items = args[1]
	}
	var err error
	if w.kept.Path, err = filepath.Abs(args[0]); err != nil {
		return err
	}
	if err := w.find(ctx); err != nil {
		return err
	}
	m.flow = w
	return w.setFlags()
}

// dryRun prints what the file does. It runs nothing of it: a list that setup makes is not there
// yet.
func (w *workflowRun) dryRun(ctx context.Context) error {
	view := planView{File: w.kept.Path, Job: w.m.runFlags.job, Mode: string(w.file.Mode), Plan: w.file.Plan()}
	list, where := w.items, w.items
	if w.file.Map != nil && list == "" {
		view.Items, where = w.file.Map.Input, "the checkout, as no setup makes it"
		if list = within(w.m.repo, view.Items); w.file.Setup != nil {
			list = ""
		}
	}
	var ids []string
	if list != "" && list != stdinList {
		choice, err := w.m.choosing.choice()
		if err != nil {
			return err
		}
		reader, err := runner.OpenList(ctx, w.m.listOptions(list, choice))
		if err != nil {
			return err
		}
		defer reader.Close() //nolint:errcheck // it was only read
		if ids, err = firstItems(reader); err != nil {
			return err
		}
	}
	return w.m.object(view, func(to io.Writer) {
		fmt.Fprint(to, escape(view.Plan))
		switch {
		case w.file.Map == nil:
		case len(ids) > 0:
			fmt.Fprintf(to, "the items of %s are %s\n", escapeLine(where), strings.Join(ids, ", "))
		case list == stdinList:
			fmt.Fprintf(to, "the items are those of standard input, which is not read\n")
		case list != "":
			fmt.Fprintf(to, "there are no items in %s\n", escapeLine(where))
		default:
			fmt.Fprintf(to, "the items are not known: setup makes %s, and nothing runs\n", escapeLine(view.Items))
		}
	})
}

// shownItems limits the items that a plan names.
const shownItems = 20

// firstItems names the first items of a list, and counts the others.
func firstItems(list *items.Reader) (ids []string, err error) {
	for n := 0; ; n++ {
		item, err := list.Next()
		switch {
		case errors.Is(err, io.EOF) && n > shownItems:
			return append(ids, fmt.Sprintf("and %d more", n-shownItems)), nil
		case errors.Is(err, io.EOF):
			return ids, nil
		case err != nil:
			return nil, err
		case n < shownItems:
			ids = append(ids, escapeLine(item.Name))
		}
	}
}

// parse reads a text of the file.
func (w *workflowRun) parse(text string) (err error) {
	w.kept.Text = text
	w.file, err = workflow.Parse(w.kept.Path, []byte(text), w.m.Env(agentVariable))
	return err
}

// find reads the file. Of a job that was begun it takes the file as it was when the job was run
// last, unless --changed takes the new one.
func (w *workflowRun) find(ctx context.Context) error {
	text, unread := readWorkflowFile(w.kept.Path)
	now := string(text)
	if unread != nil && (w.m.runFlags.job == "" || !errors.Is(unread, fs.ErrNotExist)) {
		return unread
	}
	if w.m.runFlags.job == "" {
		if err := w.parse(now); err != nil {
			return err
		}
		if w.m.runFlags.job = w.file.Job; w.m.runFlags.job == "" {
			w.m.runFlags.job = runner.DefaultJob(w.kept.Path)
		}
	}
	job := w.m.runFlags.job
	known, err := worktree.Find(ctx, worktree.Config{Repo: w.m.repo, State: w.m.worktrees(), Job: job, Environ: config.Inherited()})
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound && unread != nil:
		return unread
	case nixie.CodeOf(err) == nixie.CodeNotFound:
		return w.parse(now)
	case err != nil:
		return err
	}
	kept, is, err := known.Workflow()
	if err != nil {
		return err
	}
	if _, err := known.Invocation(); !is && err == nil {
		return usagef("job %s is the one of a list and a command: give the workflow another name by --job, or nixie map clean %s",
			job, jobFlag{job, w.m.repo}.words(w.m.mapFlags.globals))
	}
	switch {
	case !is, unread == nil && kept.Text == now:
		return w.parse(now)
	case kept.Path != w.kept.Path && unread == nil && !w.m.changed:
		return usagef("job %s is the one of %s, and %s is another file: give --job NAME, or --changed to go on with this one",
			job, kept.Path, w.kept.Path)
	case unread != nil && w.m.changed:
		return unread
	case w.m.changed:
		w.renewed = true
		return w.parse(now)
	case unread != nil:
		w.m.say("%s is gone: job %s goes on with it as it was", w.kept.Path, job)
	default:
		w.m.say("%s has changed: job %s goes on with it as it was; --changed takes the new one", w.kept.Path, job)
	}
	return w.parse(kept.Text)
}

// keep keeps the file with its job.
func (w *workflowRun) keep(job *worktree.Job) error {
	w.job = job
	return job.SaveWorkflow(w.kept)
}

// refuseOtherFile refuses to run a list as the job of a workflow file.
func refuseOtherFile(job *worktree.Job, name string) error {
	kept, is, err := job.Workflow()
	if err == nil && is {
		err = usagef("job %s is the one of the workflow file %s: give the list another name by --job", name, kept.Path)
	}
	return err
}

// setFlags gives the flags that were not given the values of the file.
func (w *workflowRun) setFlags() error {
	set := map[string][]string{}
	add := func(flag, value string) {
		if value != "" && value != "0" && !w.m.flags.Changed(flag) {
			set[flag] = append(set[flag], value)
		}
	}
	if f := w.file.Map; f != nil {
		add("parallel", strconv.Itoa(f.Parallel))
		add("json-path", f.JSONPath)
		add("where", f.Where)
		add("sort-by", f.SortBy)
		add("distinct", f.Distinct)
		add("offset", strconv.Itoa(f.Offset))
		add("max-items", strconv.Itoa(f.MaxItems))
	}
	p := &w.file.Policy
	add("on-item-failure", p.OnItemFailure)
	add("stop-after", strconv.FormatInt(p.MaxFailures, 10))
	add("stop-after", p.Threshold)
	if b := p.Breaker; b.On() {
		add("breaker", fmt.Sprintf("%d,%d,%s,%d", b.Failures, b.Successes, b.OpenFor, b.HalfOpenMax))
	}
	for flag, values := range set {
		for _, value := range values {
			if err := w.m.flags.Set(flag, value); err != nil {
				return nixie.Errorf(nixie.CodeInvalid, "%s: --%s: %w", w.kept.Path, flag, err)
			}
		}
	}
	w.m.steps = w.file.Steps
	if w.file.Map != nil {
		w.m.steps = w.file.Map.Steps
	}
	return nil
}

// configure gives the runner of the items what has no flag.
func (w *workflowRun) configure(c *runner.Config) {
	c.Env = w.file.Env
	if w.file.Map != nil {
		c.Whole = w.file.Map.Timeout
	}
	c.Values = func(ctx context.Context, _ *nixie.Delivery) (map[string]json.RawMessage, error) {
		return w.values(ctx, phaseOfItems)
	}
}

// oneItem is the list of a plain list of steps.
const oneItem = `{"id":"repository"}`

// list returns the list of the items. That of a file is kept with the job when it is read first:
// later phases may change the file that it comes from.
func (w *workflowRun) list(ctx context.Context) (string, error) {
	if w.items != "" {
		return w.items, nil
	}
	if w.file.Map == nil {
		return w.job.KeepInput(".jsonl", strings.NewReader(oneItem))
	}
	name := w.file.Map.Input
	kept, is := w.job.Input(filepath.Ext(name))
	if is && !w.renewed {
		return kept, nil
	}
	if w.file.Setup == nil {
		tree, err := w.job.Phase(ctx, "input", 0, true)
		if err != nil {
			return "", err
		}
		tree.Release()
	}
	file, err := w.job.OpenShared(name)
	if err != nil {
		return "", nixie.Errorf(nixie.CodeInvalid, "map.input of %s: %w: let setup make it, commit it, or name a list after the "+
			"workflow file", w.kept.Path, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return w.job.KeepInput(filepath.Ext(name), file)
}
