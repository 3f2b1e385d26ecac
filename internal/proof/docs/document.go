package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	Line     int // of the opening fence, from 1
	Language string
	NoRun    string // why it is not run
	File     string // name of the file that it becomes
	Text     string
}

// Command is one command of a transcript and what it shows.
type Command struct {
	Line   int
	Text   string
	Output string // as shown; empty is not compared
}

var (
	fence     = regexp.MustCompile("^ {0,3}(```+|~~~+)\\s*([\\w+-]*)\\s*(.*)$")
	attribute = regexp.MustCompile(`^(\w+)="([^"]*)"\s*`)
	hereMark  = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?`)
)

// shellLanguages are the languages whose blocks readers copy into a shell.
var shellLanguages = []string{"console", "sh", "bash", "shell"}

// Blocks lists the fenced blocks of a document in Markdown. A block that is not
// closed, or says something unknown after its language, is an error.
func Blocks(text string) ([]Block, error) {
	var blocks []Block
	var mark string
	var body []string
	for i, line := range strings.Split(text, "\n") {
		open := fence.FindStringSubmatch(line)
		switch {
		case mark == "" && open != nil:
			b := Block{Line: i + 1, Language: open[2]}
			if err := b.read(open[3]); err != nil {
				return nil, err
			}
			blocks, mark, body = append(blocks, b), open[1], nil
		case mark != "" && open != nil && strings.HasPrefix(open[1], mark) && open[2]+open[3] == "":
			blocks[len(blocks)-1].Text = strings.Join(body, "\n")
			mark = ""
		case mark != "":
			body = append(body, line)
		}
	}
	if mark != "" {
		return nil, fmt.Errorf("line %d: the block is not closed", blocks[len(blocks)-1].Line)
	}
	return blocks, nil
}

// read reads what stands behind the language.
func (b *Block) read(attributes string) error {
	for rest := attributes; rest != ""; {
		m := attribute.FindStringSubmatch(rest)
		switch {
		case m == nil:
			return fmt.Errorf("line %d: %q is not of the form name=\"value\"", b.Line, rest)
		case m[2] == "":
			return fmt.Errorf("line %d: %s has no value: say why or which", b.Line, m[1])
		case m[1] == "norun":
			b.NoRun = m[2]
		case m[1] == "file":
			b.File = m[2]
		default:
			return fmt.Errorf("line %d: %s is unknown; norun and file are known", b.Line, m[1])
		}
		rest = rest[len(m[0]):]
	}
	return nil
}

// Commands lists the commands of a block: none if it is not a transcript or is
// not run. A block for a shell with neither prompt nor reason is an error.
func (b Block) Commands() ([]Command, error) {
	if b.NoRun != "" || b.File != "" || !slices.Contains(shellLanguages, b.Language) {
		return nil, nil
	}
	var commands []Command
	lines := strings.Split(b.Text, "\n")
	for i := 0; i < len(lines); i++ {
		text, isCommand := strings.CutPrefix(lines[i], "$ ")
		if !isCommand {
			if len(commands) > 0 {
				commands[len(commands)-1].Output += lines[i] + "\n"
			}
			continue
		}
		c := Command{Line: b.Line + 1 + i, Text: text}
		for i+1 < len(lines) && goesOn(c.Text) {
			i++
			c.Text += "\n" + strings.TrimPrefix(lines[i], "> ")
		}
		if goesOn(c.Text) {
			return nil, fmt.Errorf("line %d: the command is not finished at the end of its block", c.Line)
		}
		commands = append(commands, c)
	}
	if len(commands) == 0 {
		return nil, fmt.Errorf("line %d: a %s block without a \"$ \" prompt is not run; give it prompts, or say norun=\"why\"", b.Line,
			b.Language)
	}
	for i := range commands {
		commands[i].Output = strings.Trim(commands[i].Output, "\n")
	}
	return commands, nil
}

// goesOn reports whether a command needs another line.
func goesOn(text string) bool {
	lines := strings.Split(text, "\n")
	if mark := hereMark.FindStringSubmatch(lines[0]); mark != nil {
		return !slices.Contains(lines[1:], mark[1])
	}
	return strings.HasSuffix(text, "\\")
}

// Matches reports whether the output of a command fits the output that is shown.
func Matches(shown, output string) bool {
	return matchLines(trimmed(shown), trimmed(output))
}

// trimmed splits text into lines without space at their ends, and without empty
// lines at its own ends.
func trimmed(text string) []string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return lines
}

// wildcard stands for text that differs from run to run.
const wildcard = "..."

// matchLines matches line by line; a line that is a wildcard matches any number
// of lines. It goes back to the last such line only, which is enough, because
// an earlier one can never do more than the last.
func matchLines(shown, output []string) bool {
	s, o, star, retry := 0, 0, -1, 0
	for o < len(output) {
		switch {
		case s < len(shown) && strings.TrimSpace(shown[s]) == wildcard:
			star, retry = s, o
			s++
		case s < len(shown) && matchText(shown[s], output[o]):
			s++
			o++
		case star >= 0:
			retry++
			s, o = star+1, retry
		default:
			return false
		}
	}
	for s < len(shown) && strings.TrimSpace(shown[s]) == wildcard {
		s++
	}
	return s == len(shown)
}

// matchText matches one line; a wildcard in it matches any text.
func matchText(shown, output string) bool {
	parts := strings.Split(shown, wildcard)
	last := len(parts) - 1
	if last == 0 {
		return shown == output
	}
	rest, ok := strings.CutPrefix(output, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}
