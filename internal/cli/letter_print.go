package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

// Limits of what people see of a plan or an outcome.
const (
	shownRefused = 5
	shownPlanned = 10
)

// dryRun is the JSON of --dry-run.
type dryRun struct {
	DryRun bool `json:"dry_run"`
	office.Plan
}

// printPlan prints the plan of a dry run.
func (l *letterBulk) printPlan(w io.Writer, p *office.Plan) {
	if p.Selected == 0 && len(p.Refused) == 0 {
		fmt.Fprintf(w, "0 letters would be %s: nothing matches\n", l.done)
		return
	}
	l.printSelection(w, p)
	if p.Selected == 0 {
		return
	}
	fmt.Fprintln(w, "\nIn this order")
	for _, id := range p.Letters[:min(len(p.Letters), shownPlanned)] {
		fmt.Fprintf(w, "  %s\n", id)
	}
	if len(p.Letters) > shownPlanned {
		fmt.Fprintf(w, "  and %d more\n", p.Selected-shownPlanned)
	}
	if p.Token != nil {
		fmt.Fprintf(w, "\nTo move exactly these, as long as they have not changed:\n  %s\n", l.typedAgain("--token", p.Token.String()))
	}
}

// printSelection prints what a person needs to know before saying yes.
func (l *letterBulk) printSelection(w io.Writer, p *office.Plan) {
	fmt.Fprintf(w, "%s would be %s%s", plural(p.Movable, "letter"), l.done, counts(
		count{p.Quarantined, "of them into quarantine"}, count{p.Edited, "of them edited"},
		count{p.Skipped, "skipped"}))
	if l.perSecond > 0 && p.Movable > 1 {
		fmt.Fprintf(w, ", in about %s", took(time.Duration(float64(p.Movable-1)/l.perSecond*float64(time.Second))))
	}
	fmt.Fprintln(w)
	for i := range p.Families {
		f := &p.Families[i]
		fmt.Fprintf(w, "family %s of %s: %s\n", f.ID, plural(int64(f.Groups), "cause"), escapeLine(f.Label))
		printDiffering(w, f)
	}
	causes := make([]office.Count, 0, len(p.Groups))
	for _, g := range p.Groups {
		causes = append(causes, office.Count{Value: g.Signature, Count: g.Count})
	}
	printCounts(w, "Causes", causes[:min(len(causes), shownPlanned)])
	where := "In queue"
	switch {
	case l.target.sends():
		where = "To " + l.target.destination() + ", of queue"
	case l.event == store.OnRedrive:
		where = "Back to"
	}
	printCounts(w, where, p.ByQueue)
	if to := l.target.whichPartition(); to != "" && p.Movable > 0 {
		fmt.Fprintln(w, to)
	}
	printCounts(w, "In the order of stream", p.Streams[:min(len(p.Streams), shownPlanned)])
	printCounts(w, "Skipped because", p.Refused)
	printCounts(w, "Left out, as only their calls are repeated", p.WillNotRun)
	if l.repeatsCalls() {
		fmt.Fprintln(w, repeatsCalls)
	}
	if l.ofJob {
		fmt.Fprintf(w, "\nNext:\n  %s dlq try%s %s -- COMMAND   # on copies of 10, before all go\n", l.self(), l.storeFlag(),
			cmp.Or(strings.Join(typedFlags(l.flags, "filter", "where"), " "), "--all"))
	}
}

// printOperation prints the state of an operation.
func (l *letterBulk) printOperation(w io.Writer, v *office.OperationResult) {
	if v.Selected == 0 && len(l.withheld) == 0 {
		fmt.Fprintf(w, "0 letters %s: nothing matches\n", l.done)
		return
	}
	left := count{int64(len(l.withheld)), "match and stay"}
	if left.n == office.MaxPlanned {
		left.what = "or more match and stay"
	}
	done := "0 letters"
	if v.Selected > 0 {
		done = fmt.Sprintf("%d of %s", v.Done(), plural(v.Selected, "letter"))
	}
	fmt.Fprintf(w, "%s %s%s (operation %s)\n", done, l.done, counts(
		count{value(v.Quarantined), "of them into quarantine"}, count{v.Skipped, "skipped"}, count{v.Failed, "failed"},
		count{v.Pending, "to go"}, left), v.Operation)
	if succeeded, died, gone := value(v.Succeeded), value(v.DiedAgain), value(v.Gone); succeeded+died+gone > 0 {
		fmt.Fprintf(w, "  by now %s\n", strings.TrimPrefix(counts(
			count{succeeded, "succeeded"}, count{died, "died again"}, count{gone, "gone"}, count{value(v.UnderWay), "on their way"},
			count{value(v.NewFailure), "of the dead of another failure than before"}), ", "))
	}
	printRefused(w, v.Refused)
	if more := v.Skipped + v.Failed + left.n - shownRefused; more > 0 && len(v.Refused) > shownRefused {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	if hint := l.hint(); hint != "" && v.Done() > 0 {
		fmt.Fprintln(w, hint)
	}
}

func printRefused(w io.Writer, refused []redrive.Refusal) {
	for _, r := range refused[:min(len(refused), shownRefused)] {
		fmt.Fprintf(w, "  %s\n", escapeLine(r.Why))
	}
}

// repeatsCalls tells what no letter of Celery knows of its task.
const repeatsCalls = "Celery keeps only the call of a task: what was linked to it does not run, and its priority, time limits and " +
	"headers do not come along"

// repeatsCalls reports whether letters go to Celery.
func (l *letterBulk) repeatsCalls() bool {
	return l.target.sends() && l.target.channel.System == "celery"
}

// hint tells what comes next.
func (l *letterBulk) hint() string {
	switch {
	case l.event == store.OnRequalify:
		return "how often letters were redriven stays: redrive these with a higher --max-redrives"
	case l.event != store.OnRedrive || l.choice.of != nil: // the run of the job follows
		return ""
	case l.repeatsCalls():
		return "what was redriven is in its queue. " + repeatsCalls
	case l.target.sends() && l.target.channel.Kind == app.JobQueue:
		return "what was redriven is in its queue; what dies there again is another letter: nixie dlq adopt takes it in"
	case l.target.sends():
		return "what was redriven is with the broker; what dies there again is the same letter"
	}
	return "what was redriven waits in its queue: nixie work, a worker, or the next nixie run of the job handles it"
}
