package cli

import (
	"context"
	"fmt"
	"io"
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
		a, err := o.Analyze(ctx, office.Unresolved(f), look.word())
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
	fmt.Fprintf(w, "%s, %s\n", plural(a.Letters, "letter"), plural(int64(len(a.Groups)), "cause"))
	for i, c := range a.Groups {
		if i == shownCauses {
			fmt.Fprintf(w, "\nand %s more: -o json has them all\n", plural(int64(len(a.Groups)-i), "cause"))
			break
		}
		fmt.Fprintf(w, "\n%d × %s\n", c.Count, escapeLine(c.Signature))
		if said := inFull(c.Signature, c.Text); said != "" {
			fmt.Fprintf(w, "  says      %s\n", said)
		}
		died := clock(c.FirstAt)
		if last := clock(c.LastAt); last != died {
			died += " to " + last
		}
		fmt.Fprintf(w, "  died      %s\n", died)
		examples := make([]string, len(c.Examples))
		for i, id := range c.Examples {
			examples[i] = strings.TrimSpace(id.String() + "  " + escapeLine(c.Keys[i]))
		}
		fmt.Fprintf(w, "  examples  %s\n", strings.Join(examples, "\n            "))
		fmt.Fprintf(w, "  advice    %s\n", c.Advice)
		if take := g.takeIn(); take != "" {
			fmt.Fprintf(w, "            %s\n", escapeLine(take))
			continue
		}
		choice := strings.TrimSpace(filter + " " + c.Filter)
		fmt.Fprintf(w, "  next      %s\n", g.typed("dlq", "show", c.Examples[0].String()))
		words := []string{"dlq", "redrive", "--filter", quote(choice), "--reason", "'…'", "--dry-run"}
		if c.NeedsForce {
			words = append(words, "--force")
		}
		fmt.Fprintf(w, "            %s\n", escapeLine(g.typed(words...)))
	}
	printCounts(w, "By reason", a.ByReason)
	printCounts(w, "By type", a.ByType)
	printCounts(w, "By queue", a.ByQueue)
	printCounts(w, "By hour of death (UTC)", a.ByHour)
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
