package cli

import (
	"cmp"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// fitHelp makes the help of all commands as wide as the terminal. Elsewhere help stays as it is
// written.
func (g *globals) fitHelp(root *cobra.Command) {
	written := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		var text strings.Builder
		root.SetOut(&text)
		written(c, args)
		root.SetOut(out)
		// Many texts are no other thing than one, but for the library.
		help := strings.ReplaceAll(text.String(), " stringArray ", " string      ")
		_, _ = io.WriteString(out, fitted(help, g.width())) // a reader that goes away has read enough
	})
}

// fitted breaks what is wider than width: paragraphs anew, and meanings in their column. Commands
// stay whole, so that they can be copied.
func fitted(text string, width int) string {
	if width == 0 {
		return text
	}
	twoColumns := regexp.MustCompile(`^( +\S+(?: \S+)* {2,})(\S.*)$`) // a term and what it means
	var b strings.Builder
	var paragraph []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != ' ' {
			paragraph = append(paragraph, line)
			continue
		}
		fill(&b, "", paragraph, width)
		paragraph = nil
		if m := twoColumns.FindStringSubmatch(line); m != nil {
			fill(&b, m[1], []string{m[2]}, width)
		} else {
			b.WriteString(line + "\n")
		}
	}
	fill(&b, "", paragraph, width)
	return b.String()
}

// sentence prints a text after a term, and breaks it where the terminal ends.
func (g *globals) sentence(w io.Writer, term, text string) {
	var b strings.Builder
	fill(&b, term, []string{text}, cmp.Or(g.width(), math.MaxInt))
	_, _ = io.WriteString(w, b.String()) // to memory
}

// fill writes lines after a term. If they are wider than the width, their words are set anew.
func fill(b *strings.Builder, term string, lines []string, width int) {
	indent := displayWidth(term)
	text := strings.Join(lines, "\n")
	if indent+widestOf(lines) > width {
		text = strings.Join(wrapped(strings.Join(lines, " "), max(width-indent, leastColumn)), "\n"+strings.Repeat(" ", indent))
	}
	if len(lines) > 0 {
		b.WriteString(term + text + "\n")
	}
}

// wrapped breaks a text into lines of a width. A word that is wider has a line of its own.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && displayWidth(line)+1+displayWidth(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func widestOf(lines []string) (most int) {
	for _, line := range lines {
		most = max(most, displayWidth(line))
	}
	return most
}
