package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newOperation(g *globals) *cobra.Command {
	return g.family("operation", newOperationList(g), newOperationShow(g))
}

func newOperationList(g *globals) *cobra.Command {
	type v = office.OperationView
	var page pageFlags
	return g.inOffice(g.described("operation list"), func(ctx context.Context, o *office.Office, _ []string) error {
		return list(g, &page, "operations", []column[v]{
			{name: "operation", kind: ids},
			{name: "created_at"},
			{name: "event"}, {name: "actor", kind: flex},
			{name: "selected"}, {name: "done"}, {name: "skipped"}, {name: "failed", show: asWide}, {name: "pending"},
			{name: "reason", kind: flex}, {name: "outcome", kind: flex, show: asWide, cell: outcomeText},
			{name: "filter", kind: flex, show: asWide}, {name: "destination", kind: flex, show: asWide},
		}, office.ViewOperation, o.AllOperations(ctx), func(p store.Page) ([]store.Operation, string, error) {
			return o.Operations(ctx, p)
		})
	}, &page)
}

func newOperationShow(g *globals) *cobra.Command {
	return g.inOffice(g.described("operation show", oneArg("ID")), func(ctx context.Context, o *office.Office, args []string) error {
		op, err := o.FindOperation(ctx, args[0])
		return one(g, g.printOperation)(office.ViewOperation(&op), err)
	})
}

// endedText tells when an operation ended and how long it took, "" while it has letters to go.
func endedText(v *office.OperationView) string {
	if v.EndedAt.IsZero() {
		return ""
	}
	return clock(v.EndedAt) + ", after " + v.EndedAt.Sub(v.CreatedAt.Time).Round(time.Millisecond).String()
}

// outcomeText tells what became of what a redrive moved.
func outcomeText(v *office.OperationView) string {
	o := v.Outcome
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%d succeeded, %d died of the same failure, %d of another, %d gone, %d unobserved, %d on their way",
		o.Succeeded, o.SameFailure, o.NewFailure, o.Gone, o.Unobserved, o.UnderWay)
}

func (g *globals) printOperation(w io.Writer, v *office.OperationView) {
	printFacts(w, "operation", v.Operation.String(), "event", string(v.Event), "created", clock(v.CreatedAt), "ended", endedText(v),
		"actor", v.Actor, "reason", v.Reason, "filter", v.Filter, "to", v.Destination,
		"force", yesNo(v.Force)+", what changed since it was planned: "+either(v.Guarded, "skipped", "moved as well"),
		"letters", fmt.Sprintf("%d selected: %d done, %d skipped, %d failed, %d to go", v.Selected, v.Done, v.Skipped, v.Failed, v.Pending),
		"outcome", outcomeText(v))
	var next []step
	if v.Outcome != nil {
		moved := g.typed("dlq", "list", "--filter", quote("operation:"+v.Operation.String()))
		next = append(next, step{moved, "the letters that it moved last"})
	}
	if v.Pending > 0 {
		next = append(next, step{g.typed("dlq", string(v.Event), "--resume", v.Operation.String()), "go on with it"})
	}
	printSteps(w, next)
}
