package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQRestore(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnRestore, verb: "restore", done: "restored", free: true}
	cmd := &cobra.Command{
		Use:   "restore [ID…]",
		Short: "Take the discard of letters back",
		Long: `Moves discarded letters back to open: by IDs, by --filter, or --all. What was purged
is gone, and a letter whose message was cancelled has nothing to restore.`,
		Example: `  nixie dlq restore order-4711 --reason 'it was needed after all'
  nixie dlq restore --filter 'status:discarded died:>2026-01-31' --dry-run`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	return cmd
}
