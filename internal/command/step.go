package command

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Step is one of the commands of an item. They run one after the other until one fails. A Step does
// not change and is safe for concurrent use.
type Step struct {
	// Label names the step in its failure, as it was written. It is empty for an only step, which
	// needs no name.
	Label string
	// Template holds the program and its arguments.
	Template
	// Logs gives the step a log file, see [ItemVariables].
	Logs bool
	// Commits is set if the step fails unless it commits something.
	Commits bool
	// Persistent makes the step a program whose processes stay and get items as lines; see package
	// lines.
	Persistent bool
	// Flow is set for a step of a workflow file.
	*Flow
}

// Exec makes a step without a label from a program and its arguments with placeholders, see
// [Template].
func Exec(args []string) (Step, error) {
	t, err := parseTemplate(args, false)
	return Step{Template: t}, err
}

// ParseStep reads a step from one text. Errors are of [nixie.CodeInvalid].
//
//	exec: PROGRAM ARG…   split at blanks; an argument that is {path} is replaced, see [Template]
//	agent: PROGRAM ARG…  split as a shell splits words, with quotes; {path} may stand inside an
//	                     argument; NIXIE_LOG_FILE names a log file, which is kept with a failure
//	shell: SCRIPT        for sh -c; no data gets into the script
//	commit TYPE: …       one of these, which fails unless it commits something
//	persistent TYPE: …   one of these whose processes stay
func ParseStep(text string) (Step, error) {
	kind, rest, found := strings.Cut(text, ":")
	kind, rest = strings.TrimSpace(kind), strings.TrimSpace(rest)
	s := Step{Label: label(kind + ": " + rest)}
	for words := strings.Fields(kind); len(words) > 1; words = words[1:] {
		kind = words[len(words)-1]
		switch word := words[0]; {
		case word == "commit" && !s.Commits:
			s.Commits = true
		case word == "persistent" && !s.Persistent:
			s.Persistent = true
		default:
			found = false
		}
	}
	s.Logs = kind == "agent"
	var err error
	switch {
	case !found || kind != "exec" && kind != "agent" && kind != "shell":
		return s, invalid("step %s has no type: write 'exec: PROGRAM ARG…', 'shell: SCRIPT' or 'agent: PROGRAM ARG…', "+
			"with 'commit ' before it if it has to commit, and 'persistent ' if it stays", quote(text))
	case rest == "":
		return s, invalid("step %s is empty: write what it runs after the colon", quote(text))
	case !utf8.ValidString(text):
		return s, invalid("step %s is not valid UTF-8: put it into a file and run that", quote(text))
	case kind == "shell":
		s.Template, err = shellTemplate(rest)
	case kind == "agent":
		s.Template, err = agentTemplate(rest)
	default:
		s.Template, err = wordsTemplate(rest)
	}
	if err != nil {
		return s, invalid("step %s: %w", quote(text), err)
	}
	return s, nil
}

// label makes a name of a text: one line of bounded length.
func label(text string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), nixie.MaxName)
}

// shellTemplate makes a template that gives a script to sh -c. It refuses placeholders: data would
// become code.
func shellTemplate(script string) (Template, error) {
	const instead = `the item is in its environment ("$NIXIE_FIELD_<NAME>"), in the file "$NIXIE_ITEM_FILE" and on its standard input`
	if _, ok := placeholder(script); ok {
		return Template{}, invalid("the script is a placeholder: %s", instead)
	}
	pieces, err := cutPieces(script, false)
	if err != nil {
		return Template{}, invalid("the script has a placeholder, which would make code of data: %s; {{name}} is the text {name}", instead)
	}
	script = pieces[0].text
	if path, is := dollarPlaceholder(script, "."); is {
		return Template{}, invalid("the script has ${%s}, which no shell knows: %s", path, instead)
	}
	return Template{args: []argument{textArgument("sh"), textArgument("-c"), textArgument(script)}}, nil
}

// wordsTemplate makes a template of a program and its arguments.
func wordsTemplate(text string) (Template, error) {
	args, err := split(text)
	if err != nil {
		return Template{}, err
	}
	return parseTemplate(args, false)
}

// agentTemplate makes a template of a program and its arguments, which may have quotes and
// placeholders inside: an agent gets a sentence with the item in it as one argument.
func agentTemplate(text string) (Template, error) {
	args, err := shellWords(text)
	if err != nil {
		return Template{}, err
	}
	for _, arg := range args {
		if path, is := dollarPlaceholder(arg, ""); is {
			return Template{}, invalid("it has ${%s}, which is another tool's: write {%s}", path,
				strings.TrimPrefix(strings.TrimPrefix(path, "item"), "."))
		}
	}
	return parseTemplate(args, true)
}

// dollarPlaceholder returns the path of the first ${path} of a text with a part in it. It is a
// placeholder of another tool.
func dollarPlaceholder(text, part string) (path string, is bool) {
	for i := range text {
		if path, is = dollarPath(text[i:]); is && strings.Contains(path, part) {
			return path, true
		}
	}
	return "", false
}

// dollarPath returns the path of the ${path} with which a text begins.
func dollarPath(text string) (path string, is bool) {
	rest, is := strings.CutPrefix(text, "${")
	if !is {
		return "", false
	}
	path = rest[:pathLen(rest)]
	return path, path != "" && strings.HasPrefix(rest[len(path):], "}")
}
