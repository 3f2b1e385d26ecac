package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

// shownCauses limits the groups that dlq analyze shows to people; JSON has all.
const shownCauses = 20

func newDLQAnalyze(g *globals, of *jobLetters) *cobra.Command {
	choice := letterFlags{of: of}
	var look scanFlag
	masking := masking{always: true}
	return g.inOffice(g.described("dlq analyze"), func(ctx context.Context, o *office.Office, _ []string) error {
		f, err := choice.resolve(ctx, o, choice.filter)
		if err != nil {
			return err
		}
		lines := math.MaxInt
		if g.output == asTable {
			lines = shownCauses
		}
		a, err := o.AnalyzeLargest(ctx, office.Unresolved(f), look.word(), lines)
		if err != nil {
			return err
		}
		for i := range a.Groups {
			a.Groups[i].Text = masking.text(a.Groups[i].Text)
		}
		defer g.sayCoverage(a.Coverage)
		return g.objectOf(a, a.Groups, func(w io.Writer) { g.printAnalysis(w, &a, choice.text) })
	}, &choice, &look, &masking)
}

func (g *globals) printAnalysis(w io.Writer, a *office.Analysis, filter string) {
	if a.Letters == 0 {
		fmt.Fprintln(w, "no letters")
		return
	}
	fmt.Fprintf(w, "%s, %s", plural(a.Letters, "letter"), plural(int64(len(a.Groups)), "cause"))
	if n := int64(len(a.Families)); n > 0 {
		fmt.Fprintf(w, ", %s of them", plural(n, "family"))
	}
	fmt.Fprintln(w)
	lines := a.Lines()
	for i, l := range lines {
		if i == shownCauses {
			fmt.Fprintf(w, "\nand %s more: -o json has them all\n", plural(int64(len(lines)-i), "line"))
			break
		}
		if l.Family != nil {
			g.printFamily(w, l.Family, filter)
			continue
		}
		g.printCause(w, l.Largest, filter)
	}
	printCounts(w, "By reason", a.ByReason)
	printCounts(w, "By type", a.ByType)
	printCounts(w, "By queue", a.ByQueue)
	printCounts(w, "By hour of death (UTC)", a.ByHour)
}

// printCause prints one group.
func (g *globals) printCause(w io.Writer, c *office.GroupView, filter string) {
	fmt.Fprintf(w, "\n%d × %s\n", c.Count, escapeLine(c.Signature))
	if said := inFull(c.Signature, c.Text); said != "" {
		fmt.Fprintf(w, "  says      %s\n", said)
	}
	died := clock(c.FirstAt)
	if last := clock(c.LastAt); last != died {
		died += " to " + last
	}
	fmt.Fprintf(w, "  died      %s\n", died)
	if again := c.DiedAgain; again != nil {
		fmt.Fprintf(w, "            again after redrive '%s' %s ago\n", escapeLine(again.Reason), age(g.Now().Sub(again.At.Time)))
	}
	examples := make([]string, len(c.Examples))
	for i, id := range c.Examples {
		examples[i] = strings.TrimSpace(id.String() + "  " + escapeLine(c.Keys[i]))
	}
	fmt.Fprintf(w, "  examples  %s\n", strings.Join(examples, "\n            "))
	g.sentence(w, "  advice    ", c.Advice)
	if take := g.takeIn(); take != "" {
		fmt.Fprintf(w, "            %s\n", escapeLine(take))
		return
	}
	first := ""
	if len(c.Examples) > 0 {
		first = g.typed("dlq", "show", c.Examples[0].String())
	}
	g.printChoice(w, first, filter+" "+c.Filter, c.NeedsForce)
}

// printFamily prints many groups in one.
func (g *globals) printFamily(w io.Writer, f *office.FamilyView, filter string) {
	fmt.Fprintf(w, "\n%d × %s\n", f.Count, escapeLine(f.Label))
	fmt.Fprintf(w, "  family    %s\n", plural(int64(f.Groups), "cause"))
	printDiffering(w, f)
	g.sentence(w, "  advice    ", f.Advice)
	if take := g.takeIn(); take != "" {
		fmt.Fprintf(w, "            %s\n", escapeLine(take))
		return
	}
	choice := strings.TrimSpace(filter + " " + f.Filter)
	if !f.Choosable() {
		fmt.Fprintf(w, "  next      a filter takes at most %d causes: %s\n", office.MaxFamily,
			quote(strings.TrimSpace(choice+" died:>now-1h")))
		return
	}
	g.printChoice(w, g.typed("dlq", "analyze", "--filter", quote(choice)), choice, f.NeedsForce)
}

// printDiffering prints the words that differ in a family.
func printDiffering(w io.Writer, f *office.FamilyView) {
	for _, d := range f.Differs {
		values := strings.Join(d.Examples, ", ")
		if d.Values > len(d.Examples) {
			values += ", …"
		}
		fmt.Fprintf(w, "  %-8s  %s: %s\n", cut(escapeLine(d.Name), 8)+":", plural(int64(d.Values), "value"), escapeLine(values))
	}
}

// printChoice prints the commands that come next: the first one, and the redrive of what is chosen.
func (g *globals) printChoice(w io.Writer, first, filter string, force bool) {
	words := []string{"dlq", "redrive", "--filter", quote(strings.TrimSpace(filter)), "--reason", "'…'", "--dry-run"}
	if force {
		words = append(words, "--force")
	}
	fmt.Fprintf(w, "  next      %s\n            %s\n", first, escapeLine(g.typed(words...)))
}

// shownText limits the columns of an example.
const shownText = 300

// inFull returns the text of a failure on one line, unless the signature of its group has it.
func inFull(signature, text string) string {
	line := cut(escapeLine(text), shownText)
	if strings.HasSuffix(escapeLine(signature), line) {
		return ""
	}
	return line
}
