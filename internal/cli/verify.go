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
		RunE: g.with(g.objectFormat, func(ctx context.Context, o *office.Office, _ []string) error {
			r, err := o.Verify(ctx)
			if err != nil {
				return err
			}
			if r.Violations == nil {
				r.Violations = []store.Violation{}
			}
			if err := g.object(r, func(w io.Writer) error { return printReport(w, &r, g.width()) }); err != nil {
				return err
			}
			if len(r.Violations) > 0 {
				return exit(ExitFailure)
			}
			return nil
		}),
	}
}

func printReport(w io.Writer, r *store.Report, width int) error {
	t := newTable(w, width, heading{text: "RULE"}, heading{text: "SUBJECT"}, heading{text: "WHAT IS WRONG", flex: true})
	for _, v := range r.Violations {
		if err := t.add(v.Rule, v.Subject, v.Text); err != nil {
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
