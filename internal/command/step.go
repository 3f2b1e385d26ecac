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
}

// Exec makes a step without a label from a program and its arguments with placeholders, see
// [Template].
func Exec(args []string) (Step, error) {
	t, err := ParseTemplate(args)
	return Step{Template: t}, err
}

// ParseStep reads a step from one text. Errors are of [nixie.CodeInvalid].
//
//	exec: PROGRAM ARG…   split at blanks; an argument that is {path} is replaced, see [Template]
//	agent: PROGRAM ARG…  likewise; NIXIE_LOG_FILE names a log file, which is kept with a failure
//	shell: SCRIPT        for sh -c; no data gets into the script
func ParseStep(text string) (Step, error) {
	kind, rest, found := strings.Cut(text, ":")
	kind, rest = strings.TrimSpace(kind), strings.TrimSpace(rest)
	s := Step{Label: label(kind + ": " + rest), Logs: kind == "agent"}
	var err error
	switch {
	case !found || kind != "exec" && kind != "agent" && kind != "shell":
		return s, invalid("step %s has no type: write 'exec: PROGRAM ARG…', 'shell: SCRIPT' or 'agent: PROGRAM ARG…'", quote(text))
	case rest == "":
		return s, invalid("step %s is empty: write what it runs after the colon", quote(text))
	case !utf8.ValidString(text):
		return s, invalid("step %s is not valid UTF-8: put it into a file and run that", quote(text))
	case kind == "shell":
		s.Template, err = shellTemplate(rest)
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
func shellTemplate(text string) (Template, error) {
	const instead = `the item is in its environment ("$NIXIE_FIELD_<NAME>"), in the file "$NIXIE_ITEM_FILE" and on its standard input`
	if _, ok := placeholder(text); ok {
		return Template{}, invalid("the script is a placeholder: %s", instead)
	}
	literal, err := literal(0, text)
	if err != nil {
		return Template{}, invalid("the script has a placeholder, which would make code of data: %s; {{name}} is the text {name}", instead)
	}
	if name := foreignPlaceholder(literal); name != "" {
		return Template{}, invalid("the script has ${%s}, which no shell knows: %s", name, instead)
	}
	args := []string{"sh", "-c", literal}
	return Template{args: args, paths: make([]string, len(args)), isPlaceholder: make([]bool, len(args))}, nil
}

// foreignPlaceholder returns the first ${name.name} of a script, which is a placeholder of another
// tool.
func foreignPlaceholder(script string) string {
	for {
		_, after, found := strings.Cut(script, "${")
		if !found {
			return ""
		}
		path := after[:pathLen(after)]
		if strings.Contains(path, ".") && strings.HasPrefix(after[len(path):], "}") {
			return path
		}
		script = after
	}
}

// wordsTemplate makes a template of a program and its arguments.
func wordsTemplate(text string) (Template, error) {
	args, err := split(text)
	if err != nil {
		return Template{}, err
	}
	return ParseTemplate(args)
}
