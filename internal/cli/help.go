package cli

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

// The folder help has the help of each command, and docs/cli.md is written from it. A section is
//
//	# nixie dlq list            the line of usage
//
//	List letters …              one line
//
//	Lists the letters that …    paragraphs, or nothing
//
//	For example:
//	  nixie dlq list            command lines
//
// Sections share a text by its name in double braces, as in {{broker}}.
//
//go:embed help/*.md
var helpFiles embed.FS

// helpText is the help of one command.
type helpText struct{ use, short, long, example string }

// readHelp returns the help of all commands, by their path without "nixie".
func readHelp() map[string]helpText {
	texts := map[string]helpText{}
	shared := map[string]string{"{{settings}}": strings.Join(office.SettingNames(), "\n  ")}
	names, err := fs.Glob(helpFiles, "help/*.md")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		data, err := helpFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		for _, section := range strings.Split("\n"+string(data), "\n# ")[1:] {
			head, body, _ := strings.Cut(section, "\n\n")
			if strings.HasPrefix(head, "{{") {
				shared[head] = strings.TrimSpace(body)
				continue
			}
			path := strings.TrimSpace(commandPath.FindString(head)) // with "nixie"
			name := path[strings.LastIndex(path, " ")+1:]
			text, example, _ := strings.Cut(strings.TrimRight(body, "\n"), "For example:\n")
			short, long, _ := strings.Cut(strings.TrimRight(text, "\n"), "\n\n")
			use := name + strings.TrimPrefix(head, path)
			texts[strings.TrimPrefix(path[len("nixie"):], " ")] = helpText{use, short, long, example}
		}
	}
	for path, text := range texts {
		for strings.Contains(text.long, "{{") {
			text.long = sharedName.ReplaceAllStringFunc(text.long, func(name string) string { return shared[name] })
		}
		texts[path] = text
	}
	return texts
}

var (
	commandPath = regexp.MustCompile(`^nixie( [a-z][a-z-]*\b)*( |$)`)
	sharedName  = regexp.MustCompile(`{{[a-z]+}}`)
)

// described returns a command with its help. Without args it takes no arguments.
func (g *globals) described(path string, args ...cobra.PositionalArgs) *cobra.Command {
	h, known := g.help[path]
	if !known {
		panic(fmt.Sprintf("cli: the folder help says nothing of nixie %s", path))
	}
	cmd := &cobra.Command{Use: h.use, Short: h.short, Long: h.long, Example: h.example}
	if len(args) > 0 {
		cmd.Args = args[0]
	}
	return cmd
}
