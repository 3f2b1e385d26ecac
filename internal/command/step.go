package command

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Step is one of the commands that are run for an item, one after the other until one
// fails. It does not change once made and is safe for concurrent use.
type Step struct {
	// Label names the step beside its failure, as it was written. Empty: it is the only
	// one, and its name would say nothing.
	Label string
	// Template is the program and its arguments.
	Template
	// Logs says that the step tells more in a file, see [ItemVariables].
	Logs bool
}

// Exec is a step without a label: a program and its arguments with placeholders, see
// [Template].
func Exec(args []string) (Step, error) {
	t, err := ParseTemplate(args)
	return Step{Template: t}, err
}

// ParseStep reads a step from one text. Errors are of [nixie.CodeInvalid].
//
//	exec: PROGRAM ARG…   split at blanks; an argument that is {path} is replaced, see [Template]
//	agent: PROGRAM ARG…  likewise, and NIXIE_LOG_FILE names a file for what it has to tell,
//	                     which is kept beside a failure
//	shell: SCRIPT        for sh -c; no data gets into the script
func ParseStep(text string) (Step, error) {
	kind, rest, found := strings.Cut(text, ":")
	kind, rest = strings.TrimSpace(kind), strings.TrimSpace(rest)
	s := Step{Label: label(kind + ": " + rest), Logs: kind == "agent"}
	var err error
	switch {
	case !found || kind != "exec" && kind != "agent" && kind != "shell":
		return s, invalid("step %s is of no kind: write 'exec: PROGRAM ARG…', 'shell: SCRIPT' or 'agent: PROGRAM ARG…'", quote(text))
	case rest == "":
		return s, invalid("step %s is empty: write what it runs after the colon", quote(text))
	case !utf8.ValidString(text):
		return s, invalid("step %s is not valid UTF-8: put it into a file and run that", quote(text))
	case kind == "shell":
		s.Template, err = script(rest)
	default:
		s.Template, err = words(rest)
	}
	if err != nil {
		return s, invalid("step %s: %w", quote(text), err)
	}
	return s, nil
}

// label makes a text a name: of several lines one, and not too long.
func label(text string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), nixie.MaxName)
}

// script is what hands a text to a shell. What looks as if it were replaced is refused:
// data would become code.
func script(text string) (Template, error) {
	const instead = `the item is in its environment ("$NIXIE_FIELD_<NAME>"), in the file "$NIXIE_ITEM_FILE" and on its standard input`
	if _, ok := placeholder(text); ok {
		return Template{}, invalid("the script is a placeholder: %s", instead)
	}
	literal, err := literal(0, text)
	if err != nil {
		return Template{}, invalid("the script has a placeholder, which would make data to code: %s; {{name}} is the text {name}", instead)
	}
	if name := dotted(literal); name != "" {
		return Template{}, invalid("the script has ${%s}, which no shell knows: %s", name, instead)
	}
	args := []string{"sh", "-c", literal}
	return Template{args: args, paths: make([]string, len(args)), holes: make([]bool, len(args))}, nil
}

// dotted returns the first ${name.name} of a script: a placeholder of another tool.
func dotted(script string) string {
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

// words are a program and its arguments.
func words(text string) (Template, error) {
	args, err := split(text)
	if err != nil {
		return Template{}, err
	}
	return ParseTemplate(args)
}
