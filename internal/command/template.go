package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is the argument list of a command with placeholders for an item.
//
// Expand replaces an argument {path} by the field of the item that the path names. A placeholder as
// the program or inside a longer argument is refused: data would become part of an option, a script
// or a path. Arguments of an agent may have them inside, see [ParseStep]. A value is never read
// again as a template.
//
//	{id} {user.name} {lines[0].sku}  a field
//	{}                               the whole item
//	{{id}} {{}}                      the text {id}, the text {}
//	${path}                          text, for scripts
//	a{3}b                            text, for patterns
//
// It does not change once parsed and is safe for concurrent use.
type Template struct {
	args []argument
}

// argument is an argument of a template: one text, one placeholder, or several of both.
type argument struct {
	pieces []piece
	inside bool // placeholders may stand inside, and no value may make an option of it
}

// piece is a part of an argument.
type piece struct {
	text string // itself, or the path of the placeholder
	hole bool   // it is a placeholder
}

// textArgument makes an argument without placeholders.
func textArgument(s string) argument { return argument{pieces: []piece{{text: s}}} }

// parseTemplate reads a program and its arguments, which may have placeholders inside. Errors are
// of [nixie.CodeInvalid] and name the argument.
func parseTemplate(args []string, inside bool) (Template, error) {
	if len(args) == 0 || args[0] == "" {
		return Template{}, invalid("command is empty: name a program to run")
	}
	var t Template
	for i, arg := range args {
		pieces, err := cutPieces(arg, inside)
		if path, ok := placeholder(arg); ok {
			pieces, err = []piece{{path, true}}, nil
		}
		switch {
		case err != nil:
			return Template{}, invalid("argument %d, %s, %w", i, quote(arg), err)
		case i == 0 && slices.ContainsFunc(pieces, func(p piece) bool { return p.hole }):
			return Template{}, invalid("program is the placeholder %s: an item cannot choose the program, name it", quote(arg))
		}
		t.args = append(t.args, argument{pieces, inside})
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

// cutPieces cuts an argument at its placeholders, which it refuses unless they may stand inside. It
// removes one brace on both sides of escaped ones.
func cutPieces(arg string, inside bool) ([]piece, error) {
	var all []piece
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
		case min(open, closed) > 1:
			text.WriteString(arg[pos+1 : end-1])
		case !inside:
			return nil, fmt.Errorf("has the placeholder {%s} inside a longer argument: make it an argument of its own, "+
				"or write {{%s}} for the text; the item is on standard input too, its fields in the environment", path, path)
		default:
			text.WriteString(arg[pos : pos+open-1])
			all = append(all, piece{text: text.String()}, piece{path, true})
			text.Reset()
			text.WriteString(arg[end-closed+1 : end])
		}
		pos = end
	}
	all = append(all, piece{text: text.String()})
	return slices.DeleteFunc(all, func(p piece) bool { return p == piece{} && len(all) > 1 }), nil
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
func (t Template) Program() string { return t.args[0].pieces[0].text }

// Paths returns the paths of all placeholders, each once, in order; "" means the whole item.
func (t Template) Paths() []string {
	var paths []string
	for _, arg := range t.args {
		for _, p := range arg.pieces {
			if p.hole && !slices.Contains(paths, p.text) {
				paths = append(paths, p.text)
			}
		}
	}
	return paths
}

// Expand returns the arguments for one item. The lookup gets a path, "" for the whole item, and
// returns the field as text. A missing field is a permanent failure of reason validation, and so is
// a value that would make an option of an agent's argument.
func (t Template) Expand(lookup func(path string) (string, bool)) ([]string, error) {
	args := make([]string, len(t.args))
	for i, arg := range t.args {
		for _, p := range arg.pieces {
			value := p.text
			if p.hole {
				var ok bool
				if value, ok = lookup(p.text); !ok {
					return nil, refuse("item has no field %s for argument %d: add it to the item, or write {{%s}} for the text {%s}",
						quote(p.text), i, p.text, p.text)
				}
				if arg.inside && args[i] == "" && strings.HasPrefix(value, "-") {
					return nil, refuse("field %s of the item begins with -, and argument %d would be an option: write text before {%s}",
						quote(p.text), i, p.text)
				}
			}
			args[i] += value
		}
	}
	return args, nil
}
