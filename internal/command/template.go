package command

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is the argument list of a command with placeholders for an item.
//
// Expand replaces an argument {path} by the field of the item that the path names. A placeholder as
// the program or inside a longer argument is refused: data would become part of an option, a script
// or a path. A value is never read again as a template.
//
//	{id} {user.name} {lines[0].sku}  a field
//	{}                               the whole item
//	{{id}} {{}}                      the text {id}, the text {}
//	${path}                          text, for scripts
//	a{3}b                            text, for patterns
//
// It does not change once parsed and is safe for concurrent use.
type Template struct {
	args          []string
	paths         []string // the i-th for the i-th argument
	isPlaceholder []bool   // whether it is a placeholder
}

// ParseTemplate reads a program and its arguments. Errors are of [nixie.CodeInvalid] and name the
// argument.
func ParseTemplate(args []string) (Template, error) {
	if len(args) == 0 || args[0] == "" {
		return Template{}, invalid("command is empty: name a program to run")
	}
	t := Template{args: slices.Clone(args), paths: make([]string, len(args)), isPlaceholder: make([]bool, len(args))}
	for i, arg := range args {
		if path, ok := placeholder(arg); ok {
			if i == 0 {
				return Template{}, invalid("program is the placeholder %s: an item cannot choose the program, name it", quote(arg))
			}
			t.paths[i], t.isPlaceholder[i] = path, true
			continue
		}
		text, err := literal(i, arg)
		if err != nil {
			return Template{}, err
		}
		t.args[i] = text
	}
	return t, nil
}

// placeholder returns the path of an argument that is {path}.
func placeholder(arg string) (path string, ok bool) {
	if len(arg) < 2 || arg[0] != '{' {
		return "", false
	}
	path = arg[1 : 1+pathLen(arg[1:])]
	return path, arg[1+len(path):] == "}"
}

// literal refuses placeholders inside text and removes one brace on both sides of escaped ones.
func literal(i int, arg string) (string, error) {
	var text strings.Builder
	for pos := 0; pos < len(arg); {
		if arg[pos] != '{' {
			text.WriteByte(arg[pos])
			pos++
			continue
		}
		open := leadingCount(arg[pos:], '{')
		path := arg[pos+open : pos+open+pathLen(arg[pos+open:])]
		end := pos + open + len(path)
		closed := leadingCount(arg[end:], '}')
		end += closed
		whole := pos == 0 && end == len(arg)
		first, _ := utf8.DecodeRuneInString(path)
		switch {
		case closed == 0, pos > 0 && arg[pos-1] == '$', !whole && unicode.IsNumber(first):
			text.WriteString(arg[pos:end]) // braces of a script, a pattern or a document
		case min(open, closed) == 1:
			return "", invalid("argument %d, %s, has the placeholder {%s} inside a longer argument: make it an argument of its own, "+
				"read the field from the environment or the item from standard input, or write {{%s}} for the text", i, quote(arg), path,
				path)
		default:
			text.WriteString(arg[pos+1 : end-1])
		}
		pos = end
	}
	return text.String(), nil
}

// leadingCount counts the bytes c at the beginning of s.
func leadingCount(s string, c byte) int { return len(s) - len(strings.TrimLeft(s, string(c))) }

// pathLen returns the length of the path at the beginning of s. A path is a name that does not
// begin with -, followed by names after dots and numbers in brackets.
func pathLen(s string) int {
	n := nameLen(s)
	if n == 0 || s[0] == '-' {
		return 0
	}
	for n < len(s) {
		more := 0
		switch s[n] {
		case '.':
			more = nameLen(s[n+1:])
		case '[':
			if end := strings.IndexByte(s[n:], ']'); end > 1 && strings.Trim(s[n+1:n+end], "0123456789") == "" {
				more = end
			}
		}
		if more == 0 {
			return n
		}
		n += 1 + more
	}
	return n
}

// nameLen returns the length of the name at the beginning of s: letters,
// digits, _ and -.
func nameLen(s string) int {
	for i, r := range s {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' && r != '-' {
			return i
		}
	}
	return len(s)
}

// Program returns the first argument.
func (t Template) Program() string { return t.args[0] }

// Paths returns the paths of all placeholders, each once, in order; "" means the whole item.
func (t Template) Paths() []string {
	var paths []string
	for i, path := range t.paths {
		if t.isPlaceholder[i] && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Expand returns the arguments for one item. The lookup gets a path, "" for the whole item, and
// returns the field as text. A missing field is a permanent failure of reason validation.
func (t Template) Expand(lookup func(path string) (string, bool)) ([]string, error) {
	args := slices.Clone(t.args)
	for i := range args {
		if !t.isPlaceholder[i] {
			continue
		}
		value, ok := lookup(t.paths[i])
		if !ok {
			return nil, refuse("item has no field %s for argument %d: add it to the item, or write {{%s}} for the text %s",
				quote(t.paths[i]), i, t.paths[i], t.args[i])
		}
		args[i] = value
	}
	return args, nil
}
