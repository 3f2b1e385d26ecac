package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newVerify(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read the whole store and report what breaks an invariant",
		Long: `Checks the file, every relation between its tables, the hash of every body and the
chain of the audit, and changes nothing. Exit code 0 only without a violation.`,
		Example: `  nixie verify
  nixie verify -o json | jq -r '.violations[] | [.rule, .subject] | @tsv'`,
		Args: noArgs,
		RunE: g.with(nil, func(ctx context.Context, o *office.Office, _ []string) error {
			r, err := o.Verify(ctx)
			if err != nil {
				return err
			}
			if r.Violations == nil {
				r.Violations = []store.Violation{}
			}
			if err := g.objectOf(r, r.Violations, func(w io.Writer) error { return g.printReport(w, &r) }); err != nil {
				return err
			}
			if len(r.Violations) > 0 {
				return exit(ExitFailure)
			}
			return nil
		}),
	}
}

func (g *globals) printReport(w io.Writer, r *store.Report) error {
	t := newTable(w, g.width(), g.colours(g.OutTTY), heading{text: "RULE"}, heading{text: "SUBJECT"}, heading{text: "WHAT IS WRONG", flex: true})
	for _, v := range r.Violations {
		if err := t.add(cell{v.Rule, red}, cell{text: v.Subject}, cell{text: v.Text}); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if len(r.Violations) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s checked, %s\n", plural(r.Checked, "row"), plural(int64(len(r.Violations)), "violation"))
	return nil
}
