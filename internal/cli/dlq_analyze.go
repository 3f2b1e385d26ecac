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
	a := &analyzing{globals: g, choice: letterFlags{of: of}, masking: masking{always: true}}
	groups := []flagGroup{&a.choice, &a.look, &a.masking}
	if of == nil { // jobs of nixie map have no broker
		groups = append(groups, &a.elsewhere)
	}
	return g.command(g.described("dlq analyze"), func(ctx context.Context, _ []string) error {
		if a.elsewhere.url != "" {
			return a.lookElsewhere(ctx)
		}
		return g.visit(func(o *office.Office) error { return a.lookInOffice(ctx, o) })
	}, groups...)
}

// analyzing runs dlq analyze.
type analyzing struct {
	*globals
	choice    letterFlags
	look      scanFlag
	masking   masking
	elsewhere elsewhere

	takeIn string // command that takes the letters into an office; empty: they are in one
}

func (a *analyzing) lookInOffice(ctx context.Context, o *office.Office) error {
	f, err := a.choice.resolve(ctx, o, a.choice.filter)
	if err != nil {
		return err
	}
	lines := math.MaxInt
	if a.output == asTable {
		lines = shownCauses
	}
	found, err := o.AnalyzeLargest(ctx, office.Unresolved(f), a.look.word(), lines)
	if err != nil {
		return err
	}
	defer a.sayCoverage(found.Coverage)
	a.takeIn = a.importOf()
	return a.printed(&found)
}

// printed prints an analysis, without the secrets in the texts of its examples.
func (a *analyzing) printed(found *office.Analysis) error {
	for i := range found.Groups {
		found.Groups[i].Text = a.masking.text(found.Groups[i].Text)
	}
	return a.objectOf(found, found.Groups, func(w io.Writer) { a.print(w, found) })
}

func (a *analyzing) print(w io.Writer, found *office.Analysis) {
	if found.Letters == 0 {
		fmt.Fprintln(w, "no letters")
		return
	}
	fmt.Fprintf(w, "%s, %s", plural(found.Letters, "letter"), plural(int64(len(found.Groups)), "cause"))
	if n := int64(len(found.Families)); n > 0 {
		fmt.Fprintf(w, ", %s of them", plural(n, "family"))
	}
	fmt.Fprintln(w)
	lines := found.Lines()
	for i, l := range lines {
		if i == shownCauses {
			fmt.Fprintf(w, "\nand %s more: -o json has them all\n", plural(int64(len(lines)-i), "line"))
			break
		}
		if l.Family != nil {
			a.printFamily(w, l.Family)
			continue
		}
		a.printCause(w, l.Largest)
	}
	printCounts(w, "By reason", found.ByReason)
	printCounts(w, "By type", found.ByType)
	printCounts(w, "By queue", found.ByQueue)
	printCounts(w, "By hour of death (UTC)", found.ByHour)
}

// printCause prints one group.
func (a *analyzing) printCause(w io.Writer, c *office.GroupView) {
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
		fmt.Fprintf(w, "            again after redrive '%s' %s ago\n", escapeLine(again.Reason), age(a.Now().Sub(again.At.Time)))
	}
	examples := make([]string, len(c.Examples))
	for i, id := range c.Examples {
		examples[i] = strings.TrimSpace(id.String() + "  " + escapeLine(c.Keys[i]))
	}
	fmt.Fprintf(w, "  examples  %s\n", strings.Join(examples, "\n            "))
	a.sentence(w, "  advice    ", c.Advice)
	if a.takeIn != "" {
		fmt.Fprintf(w, "            %s\n", escapeLine(a.takeIn))
		return
	}
	first := ""
	if len(c.Examples) > 0 {
		first = a.typed("dlq", "show", c.Examples[0].String())
	}
	a.printChoice(w, first, a.choice.text+" "+c.Filter, c.NeedsForce)
}

// printFamily prints many groups in one.
func (a *analyzing) printFamily(w io.Writer, f *office.FamilyView) {
	fmt.Fprintf(w, "\n%d × %s\n", f.Count, escapeLine(f.Label))
	fmt.Fprintf(w, "  family    %s\n", plural(int64(f.Groups), "cause"))
	printDiffering(w, f)
	a.sentence(w, "  advice    ", f.Advice)
	if a.takeIn != "" {
		fmt.Fprintf(w, "            %s\n", escapeLine(a.takeIn))
		return
	}
	choice := strings.TrimSpace(a.choice.text + " " + f.Filter)
	if !f.Choosable() {
		fmt.Fprintf(w, "  next      a filter takes at most %d causes: %s\n", office.MaxFamily,
			quote(strings.TrimSpace(choice+" died:>now-1h")))
		return
	}
	a.printChoice(w, a.typed("dlq", "analyze", "--filter", quote(choice)), choice, f.NeedsForce)
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
