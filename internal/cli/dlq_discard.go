package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQDiscard(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnDiscard, verb: "discard", done: "discarded"}
	cmd := &cobra.Command{
		Use:   "discard [ID…]",
		Short: "Give letters up, with a reason",
		Long: `Marks letters as discarded: by IDs, by --filter, or --all. Letters that are open,
in review or quarantined are chosen. They stay, with reason and actor, but nobody
is asked to look at them any more.`,
		Example: `  nixie dlq discard order-4711 --reason 'customer cancelled'
  nixie dlq discard --filter 'queue:test age:>30d' --reason 'test data' --dry-run
  nixie dlq discard --filter 'queue:test age:>30d' --reason 'test data' --yes`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	return cmd
}
