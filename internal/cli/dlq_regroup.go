package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

// newDLQRegroup makes the command that names the groups of older letters anew.
func newDLQRegroup(g *globals) *cobra.Command {
	var choice filterFlag
	b := &bulk{globals: g}
	cmd := g.inOffice(g.described("dlq regroup"), func(ctx context.Context, o *office.Office, _ []string) error {
		f, _, err := o.Resolve(ctx, choice.filter)
		if err != nil {
			return err
		}
		r := office.RegroupRequest{Filter: f, Reason: b.reason, Progress: func(v office.RegroupView) {
			g.status("%d of %d regrouped", v.Regrouped, v.Letters)
		}}
		return b.do(func() (plan, error) {
			dry := r
			dry.DryRun = true
			v, err := o.Regroup(ctx, dry)
			g.status("")
			return plan{v.Regrouped, func(w io.Writer) { g.printRegroup(w, &v) }, v, nil}, err
		}, func() error {
			v, err := o.Regroup(ctx, r)
			g.status("")
			return g.regrouped(ctx, &v, err)
		})
	}, checked(b.canAsk), &choice)
	b.register(cmd.Flags(), "reason", "in the audit of each queue")
	return cmd
}

// regrouped reports what was done, also if that ended early.
func (g *globals) regrouped(ctx context.Context, v *office.RegroupView, err error) error {
	if err != nil && v.Letters == 0 {
		return err
	}
	if printing := g.object(*v, func(w io.Writer) { g.printRegroup(w, v) }); printing != nil {
		return printing
	}
	if err != nil {
		g.say("stopped; the same command goes on with what is left")
	}
	if ctx.Err() != nil {
		return exit(ExitInterrupted)
	}
	if err != nil {
		return err
	}
	return exitIf(len(v.Skipped) > 0, ExitPartly)
}

// movesShown is the number of moves between groups that people see.
const movesShown = 20

func (g *globals) printRegroup(w io.Writer, v *office.RegroupView) {
	if v.Letters == 0 {
		fmt.Fprintln(w, "nothing to regroup: no letter that matches has a group of an earlier build")
		return
	}
	if v.Regrouped > 0 {
		g.printMoves(w, v.Moves)
	}
	fmt.Fprintf(w, "%d of %s %s", v.Regrouped, plural(v.Letters, "letter"), either(v.DryRun, "would be regrouped", "regrouped"))
	if v.Regrouped > 0 {
		fmt.Fprintf(w, ": %s %s %d%s", plural(int64(v.Before), "group"), either(v.Before == 1, "becomes", "become"), v.After,
			counts(count{int64(v.Joined), "joined"}, count{int64(v.Parted), "parted"}))
	}
	fmt.Fprintln(w)
	if v.Kept > 0 {
		fmt.Fprintf(w, "%d kept as they are: what their group is read from is lost\n", v.Kept)
	}
	for _, why := range v.Skipped {
		fmt.Fprintf(w, "%d skipped, %s\n", why.Count, why.Value)
	}
}

func (g *globals) printMoves(w io.Writer, moves []office.RegroupMove) {
	t := newTable(w, g.width(), g.colours(g.OutTTY), heading{text: "LETTERS", right: true}, heading{text: "FROM"}, heading{text: "TO"},
		heading{text: "WHICH IS", flex: true})
	for _, move := range moves[:min(len(moves), movesShown)] {
		_ = t.add(cell{text: strconv.FormatInt(move.Letters, 10)}, cell{text: move.From}, cell{text: move.To}, // w is in memory
			cell{text: move.Signature})
	}
	_ = t.flush()
	if more := len(moves) - movesShown; more > 0 {
		fmt.Fprintf(w, "and %d more: -o json lists them\n", more)
	}
	fmt.Fprintln(w)
}
