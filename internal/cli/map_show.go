package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// mapShown is the JSON of map show.
type mapShown struct {
	worktree.Summary
	Items  *office.QueueView   `json:"items"`  // null before the first is taken in
	Phases []phaseShown        `json:"phases"` // of a workflow, those that have begun
	Run    worktree.Invocation `json:"run"`
}

func newMapShow(g *globals) *cobra.Command {
	var name jobFlag
	return g.command(g.described("map show"), func(ctx context.Context, _ []string) error {
		return one(g, g.printMap)(g.mapShown(ctx, name))
	}, &name)
}

// mapShown looks up a job. A job that was killed before it took an item in has no queue.
func (g *globals) mapShown(ctx context.Context, of jobFlag) (v mapShown, err error) {
	job, err := g.known(ctx, of)
	if err != nil {
		return v, err
	}
	if v.Summary, err = job.Summary(); err != nil {
		return v, err
	}
	a := again{globals: g, jobFlag: of}
	if v.Run, err = a.last(ctx); err != nil {
		return v, err
	}
	err = g.at(v.Run.Store).visit(func(o *office.Office) error {
		q, err := o.Queue(ctx, job.Queue())
		if err == nil {
			items := o.ViewQueue(&q)
			v.Items = &items
		}
		if v.Phases, err = g.phasesOf(ctx, o, of, job.Queue(), v.Items); err == nil && v.Items == nil && len(v.Phases) == 0 {
			_, err = o.Queue(ctx, job.Queue())
		}
		return err
	})
	v.Run.Store = app.Shown(v.Run.Store)
	if nixie.CodeOf(err) == nixie.CodeNotFound {
		return v, nil
	}
	return v, err
}

// at returns the same flags with another store.
func (g *globals) at(store string) *globals {
	to := *g
	to.store = store
	return &to
}

func (g *globals) printMap(w io.Writer, v *mapShown) {
	items, paused := "none were taken in", ""
	if q := v.Items; q != nil {
		items = fmt.Sprintf("%d: %d succeeded, %d dead, %d discarded, %d under way, %d to go",
			q.Total, q.Succeeded, q.Dead, q.Discarded+q.Canceled, q.Leased, q.Ready+q.Scheduled)
		paused = either(q.Paused, q.PausedNote, "")
	}
	line := "nixie map run " + quote(v.Run.List) + " "
	if v.Run.Items != "" {
		line += quote(v.Run.Items) + " "
	}
	line += quoteAll(v.Run.Flags)
	if len(v.Run.Args) > 0 {
		line += " -- " + quoteAll(v.Run.Args)
	}
	facts := []string{"job", v.Job, "repository", v.Repo, "branch", v.Branch + ", to be merged into " + v.Target, "began at", v.Base,
		"kept worktrees", fmt.Sprint(v.Kept), "items", items}
	for _, p := range v.Phases {
		facts = append(facts, p.Phase, p.State+either(p.OutOfDate, ", out of date: more items have succeeded since", ""))
	}
	printFacts(w, append(facts, "paused", paused, "run in", v.Run.Folder, "run by", line)...)
	printSteps(w, g.mapNext(v))
}

// mapNext lists the commands that make sense for a job now.
func (g *globals) mapNext(v *mapShown) (next []step) {
	job := jobFlag{v.Job, v.Repo}.words(g)
	q := v.Items
	dead := q != nil && q.Dead > 0
	toDo := q == nil || q.Ready+q.Scheduled+q.Leased > 0
	for _, p := range v.Phases {
		dead = dead || p.State == phaseDead
		toDo = toDo || p.State == phaseUnfinished || p.OutOfDate
	}
	if toDo {
		next = append(next, step{g.typed("map", "resume", job), "go on, if no process runs it"})
	}
	if dead {
		next = append(next, step{g.typed("map", "dlq", "analyze", job), "why items died"},
			step{g.typed("map", "dlq", "retry", job, "--reason", "'…'"), "run them again, once that is fixed"})
	}
	return append(next, step{g.typed("map", "merge", "--repo", quote(v.Repo), "--job", quote(v.Job)),
		"bring what is done into the checkout"})
}

func newMapLogs(g *globals) *cobra.Command {
	var name jobFlag
	var masking masking
	return g.inOffice(g.described("map logs", oneArg("ITEM")), func(ctx context.Context, o *office.Office, args []string) error {
		queue, err := g.jobQueue(ctx, o, name)
		if err != nil {
			return err
		}
		ofJob := nixie.Filter{Queues: []string{queue}}
		f := ofJob
		f.Keys = args
		found, _, err := o.Messages(ctx, f, store.Page{Limit: 1, Whole: true})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nixie.Errorf(nixie.CodeNotFound, "job %s has no item %q: nixie message list --filter %s lists what it has",
				name.job, args[0], quote(filter.Text(ofJob)))
		}
		masking.message(&found[0].Message, found[0].History)
		views := office.ViewHistory(found[0].History)
		return g.objectOf(views, views, func(w io.Writer) {
			for i := range found[0].History {
				printLog(w, &found[0].History[i])
				fmt.Fprint(w, g.agentLog(&masking, found[0].History[i].LogLocation))
			}
		})
	}, &name, &masking)
}

// printLog prints the output of an attempt, as far as it was kept.
func printLog(w io.Writer, f *nixie.Failure) {
	fmt.Fprintf(w, "== attempt %d of generation %d, %s: %s\n", f.Attempt, f.Generation, moment(f.FailedAt), escapeLine(f.Text))
	for _, a := range f.Attachments {
		if office.IsText(a.Data) {
			fmt.Fprintf(w, "-- %s%s\n%s\n", escapeLine(a.Name), left(a.Truncated), escape(string(a.Data)))
		}
	}
}

// mostLog limits how much of the end of an agent's log is printed.
const mostLog = 1 << 20

// agentLog returns the end of the log that the agent of an attempt wrote, or why it is not there.
// Of an imported item it names the log only: its path may be any.
func (g *globals) agentLog(masking *masking, path string) string {
	switch rel, err := filepath.Rel(g.worktrees(), path); {
	case path == "":
		return ""
	case err != nil || !filepath.IsLocal(rel):
		return fmt.Sprintf("-- log %s\n", escapeLine(path))
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("-- log %s is not here: nixie map clean removed it, or it is on another machine\n", escapeLine(path))
	}
	defer file.Close()                     //nolint:errcheck // it was only read
	_, _ = file.Seek(-mostLog, io.SeekEnd) // a shorter log is read from its beginning
	text, err := io.ReadAll(io.LimitReader(file, mostLog))
	if err != nil {
		return fmt.Sprintf("-- log %s: %s\n", escapeLine(path), escapeLine(err.Error()))
	}
	return fmt.Sprintf("-- log %s\n%s\n", escapeLine(path), escape(masking.text(string(text))))
}
