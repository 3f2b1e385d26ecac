package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQHold(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnHold, verb: "hold", done: "held", free: true}
	cmd := &cobra.Command{
		Use:   "hold [ID…]",
		Short: "Put letters on hold, for a person to look at",
		Long: `Moves open letters to review: they are not redriven without --force until somebody
looked and releases them with nixie dlq unhold. By IDs, by --filter, or --all.`,
		Example: `  nixie dlq hold order-4711 --reason 'ask the customer first'
  nixie dlq hold --filter 'reason:validation age:<1h' --dry-run`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	return cmd
}
