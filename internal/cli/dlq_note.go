package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQNote(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnNote, verb: "note", done: "noted"}
	cmd := &cobra.Command{
		Use:   "note [ID…]",
		Short: "Write a note on letters, for those who come after",
		Long: `Appends a note to letters of any status: by IDs, by --filter, or --all. Notes are
shown by nixie dlq show with their time and author, and stay when a letter is
redriven. Without status: in the filter, unresolved letters are meant.`,
		Example: `  nixie dlq note order-4711 --text 'ticket 81: customer was asked'
  nixie dlq note --filter 'fingerprint:v2-0123456789abcdef' --text 'mended in 1.4.2' --yes`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	return cmd
}
