package command

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	posix "mvdan.cc/sh/v3/syntax"
)

// variable holds a value for a script.
type variable struct{ name, path string }

// ScriptOf makes the command of a shell step of a file. A ${path} in the script that is ours
// becomes a variable, which is quoted by where it stands; the script itself never holds a value.
// Ours are names with a dot or a bracket, item, and those that named knows. Anything else stays the
// shell's. Errors are of [nixie.CodeInvalid], with where they are as a [*PlaceError].
//
//	bare, or in double quotes    "${NIXIE_VALUE_1}"
//	in single quotes             '…'"${NIXIE_VALUE_1}"'…'
//	in a here-document           ${NIXIE_VALUE_1}, unless its delimiter is quoted
//
// It refuses them where their text would be code, and where it is not sure how a shell reads them.
func ScriptOf(script string, named func(name string) bool) (Template, *Flow, error) {
	s := scriptReader{source: script, named: named}
	text, err := s.rewrite()
	if err != nil {
		return Template{}, nil, err
	}
	return Template{args: []argument{textArgument("sh"), textArgument("-c"), textArgument(text)}}, &Flow{variables: s.variables}, nil
}

// scriptReader replaces the values of a script.
type scriptReader struct {
	source    string
	named     func(string) bool
	variables []variable
	uses      []use // in order
	text      string
}

// use is one ${path} of a script.
type use struct {
	path, name string
	from, at   int // in the source, in the text
}

func (u *use) words() string { return "${" + u.name + "}" }

// quoting tells in what a use stands.
type quoting int8

const (
	bare   quoting = iota
	double         // or a here-document: the shell does not split it
	single
	comment // which no shell reads
)

func (s *scriptReader) rewrite() (string, error) {
	s.mark()
	if len(s.uses) == 0 {
		return s.source, nil
	}
	if at := computes().FindStringIndex(s.source); at != nil {
		return "", misplaced(at[0], "the script has %q, in which some shells compute, and values: write $((…))",
			strings.TrimSpace(s.source[at[0]:at[1]]))
	}
	file, err := s.parse(s.text)
	if err != nil {
		return "", err
	}
	quotes, err := s.look(file)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	end := 0
	for i, u := range s.uses {
		b.WriteString(s.text[end:u.at])
		switch quotes[i] {
		case bare:
			b.WriteString(`"` + u.words() + `"`)
		case double, comment:
			b.WriteString(u.words())
		case single:
			b.WriteString(`'"` + u.words() + `"'`)
		}
		end = u.at + len(u.words())
	}
	b.WriteString(s.text[end:])
	inComments := len(slices.DeleteFunc(quotes, func(q quoting) bool { return q != comment }))
	return b.String(), s.prove(b.String(), len(s.uses)-inComments)
}

// mark makes the text: the source with a variable for each use.
func (s *scriptReader) mark() {
	var b strings.Builder
	for i := 0; i < len(s.source); {
		path, is := dollarPath(s.source[i:])
		if !is || !s.ours(path) {
			b.WriteByte(s.source[i])
			i++
			continue
		}
		u := use{path: path, name: s.variable(path), from: i, at: b.Len()}
		s.uses = append(s.uses, u)
		b.WriteString(u.words())
		i += len("${}") + len(path)
	}
	s.text = b.String()
}

// ours reports whether a path is a value. A name with a dash is that of a shell with a default,
// unless a step has it.
func (s *scriptReader) ours(path string) bool {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path == "item" || s.named(path)
	}
	return !strings.Contains(path[:end], "-") || s.named(path[:end])
}

// variable returns the variable of a path.
func (s *scriptReader) variable(path string) string {
	i := slices.IndexFunc(s.variables, func(v variable) bool { return v.path == path })
	if i < 0 {
		i = len(s.variables)
		s.variables = append(s.variables, variable{valuePrefix + strconv.Itoa(i+1), path})
	}
	return s.variables[i].name
}

// computes finds what a bash computes and POSIX does not know: $[…] and ((…)).
var computes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\[|(^|[^$])\(\(`) })

// parse parses a script as POSIX has it.
func (s *scriptReader) parse(text string) (*posix.File, error) {
	file, err := posix.NewParser(posix.Variant(posix.LangPOSIX), posix.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		var wrong posix.ParseError
		at, what := s.uses[0].from, err.Error()
		if errors.As(err, &wrong) {
			at, what = s.sourceOf(int(wrong.Pos.Offset())), wrong.Text
		}
		return nil, misplaced(at, "this script cannot be read, so no value can be put into it: %s; "+
			"only what every sh knows can have values; read them from $NIXIE_ITEM_FILE, or write a script of your own", what)
	}
	return file, nil
}

// sourceOf returns the byte of the source at a byte of the text.
func (s *scriptReader) sourceOf(at int) int {
	shift := 0
	for _, u := range s.uses {
		if u.at >= at {
			break
		}
		shift = (u.from + len("${}") + len(u.path)) - (u.at + len(u.words()))
	}
	return max(min(at+shift, len(s.source)), 0)
}

// useAt returns the uses that begin within a part of the text.
func (s *scriptReader) usesIn(from, to posix.Pos) (all []int) {
	for i, u := range s.uses {
		if u.at >= int(from.Offset()) && u.at < int(to.Offset()) {
			all = append(all, i)
		}
	}
	return all
}

// look finds how each use is quoted, and refuses those that would be code or that the parser did
// not see as parameters.
func (s *scriptReader) look(file *posix.File) ([]quoting, error) {
	quotes, seen := make([]quoting, len(s.uses)), make([]int, len(s.uses))
	var wrong error
	refuse := func(i int, why string) {
		if wrong == nil {
			wrong = s.refuse(i, why)
		}
	}
	var above []posix.Node
	posix.Walk(file, func(node posix.Node) bool {
		if node == nil {
			above = above[:len(above)-1]
			return true
		}
		switch n := node.(type) {
		case *posix.Comment:
			for _, i := range s.usesIn(n.Pos(), n.End()) {
				seen[i]++
				quotes[i] = comment
			}
		case *posix.SglQuoted:
			for _, i := range s.usesIn(n.Pos(), n.End()) {
				seen[i]++
				quotes[i] = single
				if why := refusedIn(above); why != "" {
					refuse(i, why)
				}
			}
		case *posix.ParamExp:
			i := slices.IndexFunc(s.uses, func(u use) bool { return u.at == int(n.Pos().Offset()) })
			if i >= 0 && n.Param != nil && n.Param.Value == s.uses[i].name && plainParameter(n) {
				seen[i]++
				quotes[i] = quotingIn(above)
				if why := refusedIn(above); why != "" {
					refuse(i, why)
				}
			}
		case *posix.CallExpr:
			s.lookAtCall(n, refuse)
		}
		above = append(above, node)
		return true
	})
	for i, n := range seen {
		if n != 1 {
			refuse(i, "stands where it is not sure how a shell reads it, such as after a backslash or in a here-document with a quoted end")
		}
	}
	return quotes, wrong
}

// plainParameter reports whether an expansion is ${NAME} and nothing more.
func plainParameter(n *posix.ParamExp) bool {
	return !n.Short && !n.Excl && !n.Length && !n.Width && n.Index == nil && n.Slice == nil && n.Repl == nil && n.Exp == nil
}

// quotingIn tells how a shell treats what stands below these nodes.
func quotingIn(above []posix.Node) quoting {
	for i, node := range slices.Backward(above) {
		switch n := node.(type) {
		case *posix.DblQuoted:
			return double
		case *posix.CmdSubst:
			return bare
		case *posix.Redirect:
			if n.Hdoc != nil && i+1 < len(above) && above[i+1] == posix.Node(n.Hdoc) {
				return double
			}
		}
	}
	return bare
}

// refusedIn returns why a value must not stand below these nodes.
func refusedIn(above []posix.Node) string {
	for _, node := range above {
		switch n := node.(type) {
		case *posix.ArithmExp, *posix.ArithmCmd:
			return "stands in arithmetic, where its text would be code"
		case *posix.CmdSubst:
			if n.Backquotes {
				return "stands in backticks, in which quotes mean something else"
			}
		case *posix.ParamExp:
			return "stands in another ${…}"
		case *posix.DblQuoted:
			if n.Dollar {
				return `stands in $"…"`
			}
		case *posix.SglQuoted:
			if n.Dollar {
				return "stands in $'…'"
			}
		}
	}
	return ""
}

// refuse makes the error of a use.
func (s *scriptReader) refuse(i int, why string) error {
	u := s.uses[i]
	if code, is := strings.CutPrefix(why, codeOf); is {
		return misplaced(u.from, "${%s} would be code for %s: give it as data, such as an argument of its own, or awk -v name=${%s}",
			u.path, code, u.path)
	}
	name := strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '.' || r == '[' || r == '-' {
			return '_'
		}
		if r == ']' || r > unicode.MaxASCII {
			return -1
		}
		return r
	}, u.path))
	return misplaced(u.from, "${%s} %s: write %s=${%s} on a line before, and \"$%s\" here", u.path, why, name, u.path, name)
}

// prove parses what was made, and checks that each variable stands in double quotes or in a
// here-document.
func (s *scriptReader) prove(script string, uses int) error {
	file, err := s.parse(script)
	if err != nil {
		return err
	}
	proven := 0
	var above []posix.Node
	posix.Walk(file, func(node posix.Node) bool {
		if node == nil {
			above = above[:len(above)-1]
			return true
		}
		n, is := node.(*posix.ParamExp)
		if is && n.Param != nil && strings.HasPrefix(n.Param.Value, valuePrefix) && quotingIn(above) == double && refusedIn(above) == "" {
			proven++
		}
		above = append(above, node)
		return true
	})
	if proven != uses {
		return s.refuse(0, "stands in a script of which it is not sure how a shell reads it")
	}
	return nil
}
