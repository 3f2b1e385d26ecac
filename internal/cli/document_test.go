package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documentHead begins docs/cli.md.
const documentHead = `# The command line

<!-- written from the program: go test ./internal/cli -run TestDocument -update -->

Every command has the form ` + "`nixie NOUN VERB`" + `, or ` + "`nixie VERB`" + ` for what is done most.
Data goes to standard output, everything else to standard error.

## Output

| ` + "`-o`" + ` | is |
|---|---|
| ` + "`table`" + ` | for people: as wide as the terminal, long texts cut with … |
| ` + "`wide`" + ` | for people: more columns, longer texts |
| ` + "`json`" + ` | one document: an object, or an array of them |
| ` + "`jsonl`" + ` | an object a line, as they come |
| ` + "`csv`" + ` | RFC 4180 with line feeds; the header has the names that JSON has; what is nested is JSON in its cell |

Names in JSON are stable, times are RFC 3339 in UTC, what is not known is null. A cell
of CSV that a spreadsheet would take for a formula begins with an apostrophe.
Foreign text never acts on a terminal: what could is written as an escape.

Lists show 50 rows; ` + "`--limit`" + `, ` + "`--cursor`" + ` and ` + "`--all`" + ` show others. Colours are for
terminals: ` + "`--color`" + ` decides, else ` + "`NO_COLOR`" + `. A reader that goes away, as ` + "`head`" + `
does, ends a listing silently.

## Exit codes

| code | means |
|---|---|
| 0 | done |
| 1 | failed, or nothing of that name |
| 2 | the arguments or the input are wrong; nothing was touched |
| 3 | a check is over its threshold, or doctor found something to fix |
| 4 | not allowed; of ` + "`consume --idle`" + `: the rest is with other members of the group |
| 5 | done, but some of it is dead or was skipped |
| 130 | interrupted |

## Flags of every command

`

// TestDocument keeps docs/cli.md equal to what the program is. Run it with
// -update after a change of commands or flags.
func TestDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "cli.md")
	var want bytes.Buffer
	document(&want)
	have, err := os.ReadFile(path)
	switch {
	case bytes.Equal(have, want.Bytes()):
	case *update:
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/cli.md is not what the commands say (%v): run go test ./internal/cli -run TestDocument -update", err)
	}
}

// Each section of the folder help is that of a command.
func TestHelpIsOfCommands(t *testing.T) {
	root := newRoot(Streams{Env: func(string) string { return "" }, Now: time.Now})
	for path, help := range readHelp() {
		c, _, err := root.Find(strings.Fields(path))
		if err != nil || pathOf(c) != path || c.Example != help.example || strings.Contains(help.long, "{{") {
			t.Errorf("help of nixie %s: %v, or not what the command says", path, err)
		}
	}
}

// document writes docs/cli.md from the tree of commands.
func document(w io.Writer) {
	root := newRoot(Streams{Env: func(string) string { return "" }, Now: time.Now})
	fmt.Fprint(w, documentHead)
	documentFlags(w, root.PersistentFlags())
	for _, c := range root.Commands() {
		if !c.Hidden {
			documentCommand(w, c, 2)
		}
	}
}

func documentCommand(w io.Writer, c *cobra.Command, depth int) {
	fmt.Fprintf(w, "\n%s %s\n\n%s.\n", strings.Repeat("#", depth), c.CommandPath(), c.Short)
	if !c.HasSubCommands() {
		fmt.Fprintf(w, "\n```text\n%s\n```\n", c.UseLine())
	}
	if c.Long != "" {
		fmt.Fprintf(w, "\n```text\n%s\n```\n", c.Long)
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\nFor example:\n\n```text\n%s\n```\n", unindented(c.Example))
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		fmt.Fprintln(w)
		documentFlags(w, c.LocalNonPersistentFlags())
	}
	for _, below := range c.Commands() {
		if !below.Hidden {
			documentCommand(w, below, depth+1)
		}
	}
}

func unindented(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  ")
}

// documentFlags writes a table of flags. Defaults of this machine are left out.
func documentFlags(w io.Writer, fs *pflag.FlagSet) {
	fmt.Fprint(w, "| flag | default | meaning |\n|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.Value.Type() != "bool" {
			name += " " + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		}
		if c, ok := f.Value.(*choice); ok {
			name = strings.TrimSuffix(name, strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))) + strings.Join(c.of, "|")
		}
		initial := f.DefValue
		switch {
		case f.Name == "parallel":
			initial = "processors"
		case initial == "[]" || initial == "false":
			initial = ""
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), cell.Replace(initial), cell.Replace(f.Usage))
	})
}
