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

// documentMark is on each page.
const documentMark = "<!-- written from the program: go test ./internal/cli -run TestDocument -update -->"

// documentHead begins docs/cli.md.
const documentHead = `# The command line

` + documentMark + `

Every command has the form ` + "`nixie NOUN VERB`" + `, or ` + "`nixie VERB`" + ` for what is done most.
Data goes to standard output, everything else to standard error.

## Output

| ` + "`-o`" + ` | is |
|---|---|
| ` + "`table`" + ` | for people: as wide as the terminal; columns are left out, the last text is cut with …; IDs by their last digits |
| ` + "`wide`" + ` | for people: all columns, whole IDs and longer texts |
| ` + "`json`" + ` | one document: an object, or an array of them |
| ` + "`jsonl`" + ` | an object a line, as they come |
| ` + "`csv`" + ` | RFC 4180 with line feeds; the header has the names that JSON has; what is nested is JSON in its cell |

Names in JSON are stable, times are RFC 3339 in UTC, what is not known is null. Times in tables
are those of this machine, with their zone. A cell
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
| 7 | stopped: all of it fails, or as much as ` + "`--stop-after`" + ` says, or the rest of ` + "`--drain`" + ` waits for what is away |
| 130 | interrupted |

## Flags of every command

`

// documentFolder has a page for each command, next to docs/cli.md.
var documentFolder = filepath.Join("..", "..", "docs")

// TestDocument keeps docs/cli.md and the pages of docs/cli equal to what the program is. Run it
// with -update after a change of commands or flags.
func TestDocument(t *testing.T) {
	want := documents()
	if *update {
		writeDocuments(t, want)
	}
	have, err := filepath.Glob(filepath.Join(documentFolder, "cli", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range have {
		if name := "cli/" + filepath.Base(file); want[name] == nil {
			t.Errorf("docs/%s is the page of no command: run go test ./internal/cli -run TestDocument -update", name)
		}
	}
	for name, page := range want {
		if text, err := os.ReadFile(filepath.Join(documentFolder, name)); !bytes.Equal(text, page.Bytes()) {
			t.Errorf("docs/%s is not what the commands say (%v): run go test ./internal/cli -run TestDocument -update", name, err)
		}
	}
}

func writeDocuments(t *testing.T, pages map[string]*bytes.Buffer) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(documentFolder, "cli")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(documentFolder, "cli"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(documentFolder, name), page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
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

// documents writes the pages from the tree of commands, by their names below docs.
func documents() map[string]*bytes.Buffer {
	root := newRoot(Streams{Env: func(string) string { return "" }, Now: time.Now})
	index := bytes.NewBufferString(documentHead)
	documentFlags(index, root.PersistentFlags())
	fmt.Fprint(index, "\n## Commands\n\n| command | what it does |\n|---|---|\n")
	pages := map[string]*bytes.Buffer{"cli.md": index}
	for _, c := range root.Commands() {
		documentCommand(pages, c)
	}
	return pages
}

// documentPage is the name of the page of a command, in the folder of such pages.
func documentPage(c *cobra.Command) string { return strings.ReplaceAll(pathOf(c), " ", "-") + ".md" }

// documentCommand writes the page of a command, and those of the commands below it.
func documentCommand(pages map[string]*bytes.Buffer, c *cobra.Command) {
	if c.Hidden {
		return
	}
	fmt.Fprintf(pages["cli.md"], "| [`%s`](cli/%s) | %s |\n", c.CommandPath(), documentPage(c), c.Short)
	w := &bytes.Buffer{}
	pages["cli/"+documentPage(c)] = w
	fmt.Fprintf(w, "# %s\n\n%s\n\n%s.\n", c.CommandPath(), documentMark, c.Short)
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
	if c.HasSubCommands() {
		fmt.Fprint(w, "\n| command | what it does |\n|---|---|\n")
	}
	for _, below := range c.Commands() {
		if !below.Hidden {
			fmt.Fprintf(w, "| [`%s`](%s) | %s |\n", below.CommandPath(), documentPage(below), below.Short)
		}
		documentCommand(pages, below)
	}
	fmt.Fprint(w, "\nOutput, exit codes and the flags of every command: [the command line](../cli.md).\n")
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
