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
rule of policy says that it needs review is still redriven with --force only.`,
		Example: `  nixie dlq unhold order-4711
  nixie dlq unhold --filter 'queue:orders' --yes`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	return cmd
}
