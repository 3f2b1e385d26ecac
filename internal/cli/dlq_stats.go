package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

func newDLQStats(g *globals, of *jobLetters) *cobra.Command {
	choice := letterFlags{of: of}
	var look scanFlag
	return g.inOffice(g.described("dlq stats"), func(ctx context.Context, o *office.Office, _ []string) error {
		f, err := choice.resolve(ctx, o, choice.filter)
		if err != nil {
			return err
		}
		s, err := o.Stats(ctx, f, look.word())
		if err != nil {
			return err
		}
		defer g.sayCoverage(s.Coverage)
		return g.object(s, func(w io.Writer) { printStats(w, &s) })
	}, &choice, &look)
}

func printStats(w io.Writer, s *office.Stats) {
	n, oldest := numeral, ""
	if s.OldestAgeS != nil {
		oldest = ageOr(s.OldestAgeS) + " ago, " + clock(s.OldestDiedAt)
	}
	printFacts(w, "open", n(s.Open), "review", n(s.Review), "quarantined", n(s.Quarantined), "redriving", n(s.Redriving),
		"resolved", n(s.Resolved), "discarded", n(s.Discarded), "redrivable", n(s.Redrivable), "needs review", n(s.NeedsReview),
		"died last hour", n(s.DeadPerHour), "retried last hour", n(s.RetriedPerHour), "oldest", oldest)
	printCounts(w, "By reason", countsOf(s.ByReason))
	printCounts(w, "By queue", countsOf(s.ByQueue))
}
