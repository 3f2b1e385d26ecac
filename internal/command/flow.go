package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Flow holds the parts of a step of a workflow file that no flag can say.
type Flow struct {
	Line      int       // of the file
	Name      string    // its output is the value NAME.output; empty is none
	Phase     string    // of the file
	Kind      string    // shell, exec, agent or claude
	When      Condition // nil always runs it
	Env       []Setting
	Dir       Text          // a folder in the workplace; empty is the workplace
	Timeout   time.Duration // of one run; 0 is that of the runner
	Capture   string        // the value that its standard output becomes; empty is none
	JSON      bool          // the capture has to be JSON
	Retry     policy.InClaim
	OnSuccess []Step
	OnFailure *Handler
	Validate  *Validation

	variables []variable // of a script
}

// Setting is a variable of the environment whose value may have values in it.
type Setting struct {
	Name string
	Text Text
}

// Handler runs steps after a step has failed, or was not complete. Then the step, or its
// validation, runs again.
type Handler struct {
	Line     int
	Steps    []Step
	Attempts int  // runs of the handler
	Fails    bool // the step has failed if no run helped; otherwise the work goes on
	Commits  bool // each run has to commit
}

// Validation measures how complete the work of a step is.
type Validation struct {
	Line         int
	Steps        []Step
	Threshold    float64 // percent; less is incomplete
	ResultFile   Text    // in the workplace; empty reads the standard output of the last step
	OnIncomplete *Handler
}

// Condition decides over the values of a step, which are an object as JSON has them.
type Condition interface {
	True(values any) bool
	Missing(values any) []string // names of it that the values have not
	String() string
}

// MaxValue limits the bytes of a value in a step of a workflow file.
const MaxValue = 64 << 10

// Values finds the values of a step by their paths, such as item.name.
type Values interface {
	Value(path string) (text string, ok bool)
	Known() []string
}

// Text is a text of a workflow file with values in it. It does not change.
type Text struct{ pieces []piece }

// String returns the text as a file has it.
func (t Text) String() string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.hole {
			b.WriteString("${" + p.text + "}")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// Paths lists the paths of the values of a text.
func (t Text) Paths() (paths []string) {
	for _, p := range t.pieces {
		if p.hole {
			paths = append(paths, p.text)
		}
	}
	return paths
}

// Fill replaces the values of a text. Errors are permanent failures of reason validation.
func (t Text) Fill(values Values) (string, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		text := p.text
		if p.hole {
			var err error
			if text, err = find(values, p.text); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// find finds a value, which has to be there and no longer than the limit.
func find(values Values, path string) (string, error) {
	text, ok := values.Value(path)
	switch {
	case !ok:
		return "", refuse("there is no value ${%s}: known are %s", path, strings.Join(values.Known(), ", "))
	case len(text) > MaxValue:
		return "", refuse("the value ${%s} has more than %d bytes, the limit: %s", path, MaxValue, fileOf(path))
	case strings.IndexByte(text, 0) >= 0:
		return "", refuse("the value ${%s} has a NUL byte, which neither arguments nor variables can have: %s", path, fileOf(path))
	}
	return text, nil
}

// fileOf says where a value is that is too much for an argument.
func fileOf(path string) string {
	if path == "item" || strings.HasPrefix(path, "item.") || strings.HasPrefix(path, "item[") {
		return "read the item from the file that $NIXIE_ITEM_FILE names"
	}
	if strings.HasPrefix(path, "map.") {
		return "read the results from the file that $NIXIE_RESULTS_FILE names"
	}
	return "let the step write it to a file, and name that"
}

// ParseText reads a text with values: ${path} is a value, or a variable of the file, $NAME is a
// variable of the file, and $$ is a dollar sign. Constant returns the variables of the file. Errors
// are of [nixie.CodeInvalid].
func ParseText(text string, constant func(name string) (string, bool)) (Text, error) {
	var t Text
	var plain strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			plain.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "${"):
			path, closed := dollarPath(rest)
			if !closed {
				return t, invalid("%s is no value: write ${NAME}, or $$ for a dollar sign; what only a shell knows belongs into "+
					"a shell step", quote(rest[:min(len(rest), 24)]))
			}
			i += len("${}") + len(path)
			if value, is := constant(path); is {
				plain.WriteString(value)
				break
			}
			t.add(&plain, path)
		case rest[0] == '$' && variableLen(rest[1:]) > 0:
			name := rest[1 : 1+variableLen(rest[1:])]
			value, is := constant(name)
			if !is {
				return t, invalid("$%s is no variable of the file's env: add it there, or write $$%s for the text", name, name)
			}
			plain.WriteString(value)
			i += 1 + len(name)
		default:
			plain.WriteByte(rest[0])
			i++
		}
	}
	if plain.Len() > 0 {
		t.pieces = append(t.pieces, piece{text: plain.String()})
	}
	return t, nil
}

// add adds a value, after the text that is before it.
func (t *Text) add(before *strings.Builder, path string) {
	if before.Len() > 0 {
		t.pieces = append(t.pieces, piece{text: before.String()})
		before.Reset()
	}
	t.pieces = append(t.pieces, piece{path, true})
}

// variableLen returns the length of the name of a variable of the environment at the beginning.
func variableLen(s string) int {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// IsVariable reports whether a text may name a variable of the environment.
func IsVariable(name string) bool { return name != "" && variableLen(name) == len(name) }

// WordsOf makes the command of a step of a file from a program and its arguments, which are split
// as a shell splits them. Values may stand inside an argument, which stays one.
func WordsOf(text string, constant func(string) (string, bool)) (Template, error) {
	words, err := splitWords(text, true)
	if err != nil {
		return Template{}, err
	}
	return ArgumentsOf(words, constant)
}

// ArgumentsOf makes the command of a step of a file from words that may have values.
func ArgumentsOf(words []string, constant func(string) (string, bool)) (Template, error) {
	var t Template
	for i, word := range words {
		text, err := ParseText(word, constant)
		switch {
		case err != nil:
			return t, err
		case i == 0 && len(text.Paths()) > 0:
			return t, invalid("the program is %s: a value cannot choose the program, name it", word)
		case i == 0 && text.String() == "":
			return t, invalid("the command is empty: name a program and its arguments")
		case len(text.pieces) == 0:
			text.pieces = []piece{{}}
		}
		t.args = append(t.args, argument{text.pieces, true})
	}
	return t, nil
}

// SplitWords splits a text as a shell splits words; values in them stay.
func SplitWords(text string) ([]string, error) { return splitWords(text, true) }

// CheckPath refuses a path that leads out of the workplace, or into git's folder.
func CheckPath(t Text) error {
	if len(t.pieces) == 0 {
		return invalid("it is empty: name a path in the worktree")
	}
	for i, p := range t.pieces {
		if p.hole {
			continue
		}
		if i == 0 && strings.HasPrefix(p.text, "/") {
			return invalid("%s is absolute: name a path in the worktree", quote(t.String()))
		}
	}
	return insidePath(t.String())
}

// insidePath refuses parts of a path that lead out, or into git's folder.
func insidePath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." || strings.EqualFold(part, ".git") {
			return invalid("%s has %s: a path stays in the worktree, and out of .git", quote(path), part)
		}
	}
	return nil
}

// ConditionText makes an expression of a condition: ${path}, also in quotes, becomes the name of
// the value.
func ConditionText(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		quoted := 0
		if rest[0] == '"' || rest[0] == '\'' {
			quoted = 1
		}
		path, is := dollarPath(rest[quoted:])
		end := quoted + len("${}") + len(path)
		if is && quoted == 1 {
			is = strings.HasPrefix(rest[end:], rest[:1])
			end++
		}
		switch {
		case is:
			root := path
			if at := strings.IndexAny(path, ".["); at >= 0 {
				root = path[:at]
			}
			if strings.Contains(root, "-") {
				return "", invalid("${%s}: a condition cannot have a name with -", path)
			}
			b.WriteString(bracketed(path))
			i += end
		case strings.HasPrefix(rest, "${"):
			return "", invalid("%s is no value of a condition: write ${NAME} by itself, not within a text",
				quote(rest[:min(len(rest), 24)]))
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	return b.String(), nil
}

// bracketed writes the names of a path that have a dash in brackets.
func bracketed(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts[1:] {
		name, index, _ := strings.Cut(part, "[")
		if strings.Contains(name, "-") {
			part = `["` + name + `"]`
			if index != "" {
				part += "[" + index
			}
			parts[i+1] = part
		} else {
			parts[i+1] = "." + part
		}
	}
	return strings.Join(parts, "")
}

// Label makes the name of a step of a text.
func Label(text string) string { return label(text) }

// Words returns the command of a step of a file, its values written as ${path}.
func (s *Step) Words() (words []string) {
	for _, a := range s.args {
		words = append(words, Text{a.pieces}.String())
	}
	return words
}

// Script lists the variables that hold the values of a script, with the paths of those.
func (s *Step) Script() (all []Field) {
	for _, v := range s.variables {
		all = append(all, Field{v.name, v.path})
	}
	return all
}

// Values lists the paths of the values that a step needs before it runs.
func (s *Step) Values() (paths []string) {
	paths = s.Paths()
	for _, v := range s.variables {
		paths = append(paths, v.path)
	}
	paths = append(paths, s.Dir.Paths()...)
	for _, e := range s.Flow.Env {
		paths = append(paths, e.Text.Paths()...)
	}
	return paths
}

// Prepare returns the arguments of a step of a file, and the variables of its script. Errors are
// permanent failures of reason validation and name the line.
func (s *Step) Prepare(values Values) (args []string, script []Field, err error) {
	for _, v := range s.variables {
		text, err := find(values, v.path)
		if err != nil {
			return nil, nil, s.atLine(err)
		}
		script = append(script, Field{v.name, text})
	}
	for i, arg := range s.args {
		text, err := arg.fill(i, values)
		if err != nil {
			return nil, nil, s.atLine(err)
		}
		args = append(args, text)
	}
	return args, script, nil
}

// fill replaces the values of an argument, of which none may make an option.
func (a argument) fill(i int, values Values) (string, error) {
	var text strings.Builder
	for _, p := range a.pieces {
		if !p.hole {
			text.WriteString(p.text)
			continue
		}
		value, err := find(values, p.text)
		if err != nil {
			return "", err
		}
		if text.Len() == 0 && strings.HasPrefix(value, "-") {
			return "", refuse("the value ${%s} begins with -, and argument %d would be an option: write text before it", p.text, i)
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// atLine adds the line of a step to an error.
func (s *Step) atLine(err error) error { return fmt.Errorf("line %d: %w", s.Line, err) }

// Variables returns the variables that a step of a file sets.
func (s *Step) Variables(values Values) (all []Field, err error) {
	for _, e := range s.Flow.Env {
		text, err := e.Text.Fill(values)
		if err == nil && len(e.Name)+len("=")+len(text) >= MaxVariable {
			err = refuse("it has %d bytes, a variable has at most %d", len(text), MaxVariable)
		}
		if err != nil {
			return nil, s.atLine(fmt.Errorf("env %s: %w", e.Name, err))
		}
		all = append(all, Field{e.Name, text})
	}
	return all, nil
}

// Folder returns the working directory of a step of a file: a folder in the workplace, which no
// link leads out of.
func (s *Step) Folder(workplace string, values Values) (string, error) {
	if s.Dir.String() == "" {
		return workplace, nil
	}
	name, err := s.Dir.Fill(values)
	if err == nil {
		err = isInside(workplace, name)
	}
	if err != nil {
		return "", s.atLine(fmt.Errorf("working_dir: %w", err))
	}
	return filepath.Join(workplace, name), nil
}

// isInside refuses a path that is no folder in the workplace.
func isInside(workplace, name string) error {
	if err := localPath(name); err != nil {
		return err
	}
	root, err := os.OpenRoot(workplace)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only looked at
	info, err := root.Stat(name)
	if err == nil && !info.IsDir() {
		return refuse("%s is no folder", quote(name))
	}
	if err != nil {
		return refuse("%w", err)
	}
	return nil
}

// localPath refuses a path that leads out of its folder, or into git's.
func localPath(name string) error {
	if !filepath.IsLocal(name) {
		return refuse("%s is no path in the worktree", quote(name))
	}
	if err := insidePath(name); err != nil {
		return refuse("%w", err)
	}
	return nil
}

// TakeInside returns up to limit bytes of a regular file in a folder, and removes the file. No link
// leads out of the folder. Errors are of [nixie.CodeInvalid].
func TakeInside(folder, name string, limit int64) ([]byte, error) {
	if err := localPath(name); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = root.Close() }() // it was only read
	file, err := root.OpenFile(name, os.O_RDONLY|safeOpenFlags, 0)
	if err != nil {
		return nil, unreadable(err)
	}
	data, err := readRegular(file, limit)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, unreadable(err)
	}
	if err := root.Remove(name); err != nil {
		return nil, unreadable(err)
	}
	return data, nil
}

func readRegular(file *os.File, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// PlaceError is an error of a text with the byte at which it is.
type PlaceError struct {
	At  int
	Err error
}

func (e *PlaceError) Error() string { return e.Err.Error() }

func (e *PlaceError) Unwrap() error { return e.Err }

func misplaced(at int, format string, args ...any) error {
	return &PlaceError{at, nixie.Errorf(nixie.CodeInvalid, format, args...)}
}
