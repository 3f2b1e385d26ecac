package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

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
		defer g.sayCoverage(s.LookedAt)
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

// countsOf lists the counts of a map, largest first.
func countsOf(m map[string]int64) []office.Count {
	list := make([]office.Count, 0, len(m))
	for value, n := range m {
		list = append(list, office.Count{Value: value, Count: n})
	}
	slices.SortFunc(list, func(a, b office.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return list
}

// printCounts prints a distribution under a title.
func printCounts(w io.Writer, title string, counts []office.Count) {
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, c := range counts {
		value := c.Value
		if value == "" {
			value = "(none)"
		}
		fmt.Fprintf(w, "  %6d  %s\n", c.Count, escapeLine(value))
	}
}

// facts are names and values that are printed in two columns.
type facts [][2]string

// add takes names and values alternately. A value may be foreign text; an empty one is left out.
func (f *facts) add(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			*f = append(*f, [2]string{pairs[i], pairs[i+1]})
		}
	}
}

func (f facts) print(w io.Writer) {
	width := 0
	for _, row := range f {
		width = max(width, displayWidth(row[0]))
	}
	for _, row := range f {
		fmt.Fprintf(w, "%s  %s\n", pad(row[0], width), escapeLine(row[1]))
	}
}

func printFacts(w io.Writer, pairs ...string) {
	var f facts
	f.add(pairs...)
	f.print(w)
}
