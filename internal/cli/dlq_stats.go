package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

func newDLQStats(g *globals, of *jobLetters) *cobra.Command {
	choice := letterFlags{of: of}
	var look lookFlag
	return g.inOffice(&cobra.Command{
		Use:   "stats",
		Short: "Count letters by status, reason and queue",
		Long: `Counts letters. redrivable, needs review, oldest, by reason and by queue are about
the letters that wait for somebody: open, review and quarantined ones. With text:,
first_failed:, last_failed: or deliveries: it is about the newest of many letters,
and says so.`,
		Example: `  nixie dlq stats
  nixie dlq stats --filter queue:orders -o json | jq .oldest_age_s`,
	}, func(ctx context.Context, o *office.Office, _ []string) error {
		f, err := choice.resolve(ctx, o, choice.filter)
		if err != nil {
			return err
		}
		s, err := o.Stats(ctx, f, look.word())
		if err != nil {
			return err
		}
		defer g.lookedAt(s.LookedAt)
		return g.object(s, func(w io.Writer) { printStats(w, &s) })
	}, &choice, &look)
}

func printStats(w io.Writer, s *office.Stats) {
	facts := newFacts(w)
	for _, n := range [...]struct {
		name string
		n    int64
	}{
		{"open", s.Open}, {"review", s.Review}, {"quarantined", s.Quarantined}, {"redriving", s.Redriving},
		{"resolved", s.Resolved}, {"discarded", s.Discarded}, {"redrivable", s.Redrivable}, {"needs review", s.NeedsReview},
		{"died last hour", s.DeadPerHour}, {"retried last hour", s.RetriedPerHour},
	} {
		facts.add(n.name, fmt.Sprint(n.n))
	}
	if s.OldestAgeS != nil {
		facts.add("oldest", age(time.Duration(*s.OldestAgeS)*time.Second)+" ago, "+clock(s.OldestDiedAt))
	}
	facts.end()
	printCounts(w, "By reason", countsOf(s.ByReason))
	printCounts(w, "By queue", countsOf(s.ByQueue))
}

// countsOf lists a map, largest first.
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

// facts prints names and values in two columns.
type facts struct {
	w     io.Writer
	rows  [][2]string
	width int
}

func newFacts(w io.Writer) *facts { return &facts{w: w} }

// add takes names and values in turn; a value may be foreign text, and an empty one is left out.
func (f *facts) add(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			f.rows = append(f.rows, [2]string{pairs[i], pairs[i+1]})
			f.width = max(f.width, displayWidth(pairs[i]))
		}
	}
}

func (f *facts) end() {
	for _, row := range f.rows {
		fmt.Fprintf(f.w, "%s  %s\n", pad(row[0], f.width, false), escapeLine(row[1]))
	}
}
