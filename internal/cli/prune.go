package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

func newPrune(g *globals) *cobra.Command {
	var dry bool
	cmd := g.inOffice(&cobra.Command{
		Use:   "prune",
		Short: "Remove what is older than the retention of its queue",
		Long: `Removes messages that have ended, 7 days after their end unless their queue keeps
them for longer; the oldest entries of audits, after 90 days; and keys of inboxes,
after 30 days. Letters that are resolved or discarded go only where their queue has
a letter retention. What has not ended, and letters in which somebody still has to
do something, are never touched. The queues of nixie run keep their messages, so
that no item runs twice.

nixie run prunes a little when it has nothing left to do, so that this is needed
only where nothing else runs, or to see with --dry-run what would go.`,
		Example: `  nixie prune --dry-run
  nixie prune -o json`,
	}, func(ctx context.Context, o *office.Office, _ []string) error {
		return one(g, func(w io.Writer, p *office.PruneView) {
			fmt.Fprintf(w, "%s, %s, %s of audits and %s of inboxes %s\n", plural(p.Messages, "message"), plural(p.Letters, "letter"),
				plural(p.Entries, "entry"), plural(p.Keys, "key"), either(dry, "would be removed", "removed"))
		})(o.Prune(ctx, dry))
	})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count what would be removed and remove nothing")
	return cmd
}
