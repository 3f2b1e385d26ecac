package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQUnhold(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnUnhold, verb: "unhold", done: "released", free: true}
	cmd := &cobra.Command{
		Use:   "unhold [ID…]",
		Short: "Let letters on hold go on",
		Long: `Moves letters in review back to open: by IDs, by --filter, or --all. A letter whose
rule of policy says that it needs review is still redriven with --force only, unless
--reviewed says that a person has found that it may go.`,
		Example: `  nixie dlq unhold order-4711
  nixie dlq unhold --filter 'queue:orders' --reviewed --reason 'amounts are right' --yes`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	cmd.Flags().BoolVar(&w.reviewed, "reviewed", false, "a person found that they may be redriven: without --force from now on")
	return cmd
}
