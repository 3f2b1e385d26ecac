package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQRequalify(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnRequalify, verb: "requalify", done: "requalified"}
	cmd := &cobra.Command{
		Use:   "requalify [ID…]",
		Short: "Let quarantined letters be redriven again",
		Long: `Moves letters that were redriven too often back to open, with a reason: by IDs, by
--filter, or --all. How often they were redriven stays, so a redrive of them needs
a higher --max-redrives.`,
		Example: `  nixie dlq requalify order-4711 --reason 'the bank mended its side'
  nixie dlq redrive order-4711 --max-redrives 5 --reason 'the bank mended its side'`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	return cmd
}
