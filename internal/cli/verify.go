package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newVerify(g *globals) *cobra.Command {
	return g.inOffice(&cobra.Command{
		Use:   "verify",
		Short: "Read the whole store and report what breaks an invariant",
		Long: `Checks the file, every relation between its tables, the hash of every body and the
chain of the audit, and changes nothing. Exit code 0 only without a violation.`,
		Example: `  nixie verify
  nixie verify -o json | jq -r '.violations[] | [.rule, .subject] | @tsv'`,
	}, func(ctx context.Context, o *office.Office, _ []string) error {
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
	t := newTable(w, g.width(), g.colours(g.OutTTY), heading{text: "RULE"}, heading{text: "SUBJECT"}, heading{text: "WHAT IS WRONG", flex: true})
	for _, v := range r.Violations {
		_ = t.add(cell{v.Rule, red}, cell{text: v.Subject}, cell{text: v.Text}) // it is in memory
	}
	_ = t.flush()
	if len(r.Violations) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s checked, %s\n", plural(r.Checked, "row"), plural(int64(len(r.Violations)), "violation"))
}
