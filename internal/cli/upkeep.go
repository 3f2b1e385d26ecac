package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newVerify(g *globals) *cobra.Command {
	return g.inOffice(g.described("verify"), func(ctx context.Context, o *office.Office, _ []string) error {
		r, err := o.Verify(ctx)
		if err != nil {
			return err
		}
		if r.Violations == nil {
			r.Violations = []store.Violation{}
		}
		return cmp.Or(g.objectOf(r, r.Violations, func(w io.Writer) { g.printReport(w, &r) }), exitIf(len(r.Violations) > 0, ExitFailure))
	})
}

func (g *globals) printReport(w io.Writer, r *store.Report) {
	t := newTable(w, g.width(), g.colours(g.OutTTY), heading{text: "RULE"}, heading{text: "SUBJECT"},
		heading{text: "WHAT IS WRONG", flex: true, prose: true})
	for _, v := range r.Violations {
		_ = t.add(cell{v.Rule, red}, cell{text: v.Subject}, cell{text: v.Text}) // w is in memory
	}
	_ = t.flush()
	if len(r.Violations) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s checked, %s\n", plural(r.Checked, "row"), plural(int64(len(r.Violations)), "violation"))
}

func newPrune(g *globals) *cobra.Command {
	var dry bool
	cmd := g.inOffice(g.described("prune"), func(ctx context.Context, o *office.Office, _ []string) error {
		return one(g, func(w io.Writer, p *office.PruneView) {
			fmt.Fprintf(w, "%s, %s, %s of audits and %s of inboxes %s\n", plural(p.Messages, "message"), plural(p.Letters, "letter"),
				plural(p.Entries, "entry"), plural(p.Keys, "key"), either(dry, "would be removed", "removed"))
		})(o.Prune(ctx, dry))
	})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count what would be removed and remove nothing")
	return cmd
}

func newDoctor(g *globals) *cobra.Command {
	return g.command(g.described("doctor"), func(ctx context.Context, _ []string) error {
		err := g.visit(func(o *office.Office) error {
			e, err := o.Inspect(ctx)
			if err != nil {
				return err
			}
			return cmp.Or(g.objectOf(e, e.Problems, func(w io.Writer) { printHealth(w, &e) }), exitIf(len(e.Problems) > 0, ExitThreshold))
		})
		if errors.Is(err, store.ErrAnotherBuild) {
			return nixie.Errorf(nixie.CodeUnavailable, "%w", err) // found, and no mistake of the command line
		}
		return err
	})
}

func printHealth(w io.Writer, e *office.HealthView) {
	var f facts
	f.add("store", e.Store, "engine", e.Engine, "schema", fmt.Sprintf("%d, this program knows %d", e.Schema, e.KnownSchema))
	for _, d := range e.Durability {
		f.add(d.Name, d.Value)
	}
	f.add("size", mebibytes(e.SizeBytes))
	if e.FreeBytes != nil {
		f.add("free space", mebibytes(*e.FreeBytes)+", reserve "+reserve(e.Reserve))
	}
	f.add("queues", fmt.Sprint(e.Queues), "clock", clock(e.Now), "last write", clock(e.LastWrite))
	if !e.OldestLease.IsZero() {
		f.add("oldest lease", "ends "+clock(e.OldestLease))
	}
	for _, o := range e.Owners {
		f.add("owner", fmt.Sprintf("%s, %s, since %s, %s", o.Name, either(o.Alive, "alive", "gone"), clock(o.StartedAt),
			plural(o.Leases, "lease")))
	}
	f.print(w)
	if len(e.Problems) == 0 {
		fmt.Fprintln(w, "\nnothing is wrong")
		return
	}
	fmt.Fprintln(w, "\nWrong")
	for _, found := range e.Problems {
		fmt.Fprintf(w, "  %s\n    fix: %s\n", escapeLine(found.What), escapeLine(found.Fix))
	}
}

func reserve(bytes *int64) string {
	if bytes == nil {
		return "none"
	}
	return mebibytes(*bytes)
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
