package cli

import (
	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
)

func newDLQRedrive(g *globals) *cobra.Command {
	w := &moving{globals: g, event: nixie.OnRedrive, verb: "redrive", done: "redriven"}
	cmd := &cobra.Command{
		Use:   "redrive [ID…]",
		Short: "Send letters on their way again",
		Long: `Queues the messages of letters again, oldest death first: by IDs, by --filter, or
--all. Only open letters are chosen; with --force also those in review, and what
is not redrivable goes too. A letter that was redriven --max-redrives times is
skipped. --max counts letters that go.

The selection is frozen before the first letter moves, so an operation that was
stopped goes on with --resume, and no letter is redriven twice. --dry-run shows
exactly what would happen.

Exit codes: 0 all redriven (also when nothing matches), 5 some were skipped or
have failed, 130 interrupted.`,
		Example: `  nixie dlq redrive order-4711 --reason 'address mended'
  nixie dlq redrive --filter 'queue:orders reason:timeout' --max 10 --reason 'canary' --dry-run
  nixie dlq redrive --filter 'fingerprint:v1-0123456789abcdef' --rate 50 --reason 'fixed in 1.4.2' --yes
  nixie dlq redrive --resume 01890a5d-ac96-774b-bcce-b302099a8057 --rate 50 --yes`,
		RunE: w.run,
	}
	w.register(cmd.Flags())
	fs := cmd.Flags()
	fs.BoolVar(&w.force, "force", false, "redrive also what is not redrivable or needs review")
	fs.IntVar(&w.maxRedrives, "max-redrives", 0, "skip what was redriven so often; 0 is the default, -1 no cap")
	return cmd
}
