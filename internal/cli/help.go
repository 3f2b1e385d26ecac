package cli

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/office"
)

// The folder help has the help of each command, and docs/cli is written from it. A section is
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
	settings := office.SettingNames()
	for i := range settings {
		settings[i] = strings.Join(wrapped(settings[i], 74), "\n      ")
	}
	shared := map[string]string{"{{settings}}": strings.Join(settings, "\n  ")}
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
			path := commandPath(head) // with "nixie"
			name := path[strings.LastIndex(path, " ")+1:]
			text, example, _ := strings.Cut(strings.TrimRight(body, "\n"), "For example:\n")
			short, long, _ := strings.Cut(strings.TrimRight(text, "\n"), "\n\n")
			use := name + strings.TrimPrefix(head, path)
			texts[strings.TrimPrefix(path[len("nixie"):], " ")] = helpText{use, short, long, example}
		}
	}
	for path, text := range texts {
		for {
			before, rest, found := strings.Cut(text.long, "{{")
			name, after, _ := strings.Cut(rest, "}}")
			if !found {
				break
			}
			text.long = before + shared["{{"+name+"}}"] + after
		}
		texts[path] = text
	}
	return texts
}

// commandPath returns the words of a line of usage that name the command.
func commandPath(usage string) string {
	words := strings.Fields(usage)
	for i, word := range words {
		if word[0] == '-' || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			words = words[:i]
			break
		}
	}
	return strings.Join(words, " ")
}

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
