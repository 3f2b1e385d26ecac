package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/spelling"
)

// reader makes a file of nodes. It goes on after an error, to tell all at once.
type reader struct {
	file  *File
	agent string
	lines []string // of the source
	found []Wrong

	env      map[string]string // of the file
	captures []string          // names of captures and of steps, anywhere in the file
	times    map[string]*node  // of kinds of steps
	phase    string            // that is being read
	gaps     bool              // values of a validation are known
	depth    int               // handlers within each other
}

// wrong notes what is wrong.
func (r *reader) wrong(at Position, format string, args ...any) {
	r.found = append(r.found, Wrong{at, firstLine(fmt.Sprintf(format, args...))})
}

// addAt notes an error that knows where it is.
func (r *reader) addAt(err error) {
	var p *placed
	if errors.As(err, &p) {
		r.wrong(p.at, "%s", p.err)
		return
	}
	r.wrong(Position{1, 1}, "%s", err)
}

// block is the keys of a node, of which each is taken by the code that understands it.
type block struct {
	name  string
	at    Position
	pairs []pair
	none  bool // it is no block
}

// block opens keys with values, and refuses those that are not in the table.
func (r *reader) block(n *node, name string) *block {
	b := &block{name: name, at: n.at}
	if n.kind != keys {
		r.wrong(n.at, "%s: want keys with values, this is %s", name, n.kind)
		b.none = true
		return b
	}
	known := fieldsOf(name)
	for _, p := range n.pairs {
		i := slices.IndexFunc(known, func(f Field) bool { return f.Name == p.name })
		switch {
		case i < 0:
			r.wrong(p.at, "key %q is unknown in %s: did you mean %s? nixie map validate --fields lists all", clip(p.name), name,
				spelling.Nearest(p.name, namesOf(known)))
		case !known[i].Works():
			r.wrong(p.at, "%s of %s is refused: %s", p.name, name, known[i].Refused)
		default:
			b.pairs = append(b.pairs, p)
		}
	}
	return b
}

func namesOf(fields []Field) []string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return names
}

// clip bounds a text for an error.
func clip(s string) string { return s[:min(len(s), 64)] }

// take takes a key out of the block; nil if it is not there.
func (b *block) take(name string) *pair {
	i := slices.IndexFunc(b.pairs, func(p pair) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	p := b.pairs[i]
	b.pairs = slices.Delete(slices.Clone(b.pairs), i, i+1)
	return &p
}

// end reports a key that the table has and no code took, which is a defect.
func (r *reader) end(b *block) {
	for _, p := range b.pairs {
		r.wrong(p.at, "%s of %s is known, and nothing reads it here", p.name, b.name)
	}
}

// Values of keys.

// text reads a text; without one it returns "".
func (r *reader) text(p *pair) string {
	if p == nil {
		return ""
	}
	switch p.value.kind {
	case text:
		if strings.IndexByte(p.value.text, 0) >= 0 {
			r.wrong(p.value.at, "%s holds a NUL byte, which no command can get", p.name)
		}
		return p.value.text
	case number, boolean:
		return p.value.text
	}
	r.wrong(p.value.at, "%s: want a text, this is %s", p.name, p.value.kind)
	return ""
}

// name reads a text of one line.
func (r *reader) name(p *pair) string {
	s := r.text(p)
	if p != nil && (s == "" || strings.ContainsAny(s, "\r\n")) {
		r.wrong(p.value.at, "%s: want one line", p.name)
	}
	if err := nixie.CheckName("name", s); err != nil {
		r.wrong(p.value.at, "%s: %v", p.name, err)
	}
	return s
}

// constant returns the value of a variable of the file that is the whole of a text, or the text.
func (r *reader) constant(p *pair) string {
	s := r.text(p)
	if p == nil || !strings.Contains(s, "$") {
		return s
	}
	filled, err := command.ParseText(s, r.variable)
	if err != nil {
		r.wrong(p.value.at, "%s: %v", p.name, err)
		return ""
	}
	if paths := filled.Paths(); len(paths) > 0 {
		r.wrong(p.value.at, "%s: ${%s} is no variable of the file's env, and nothing else is known before the work begins: known are %s",
			p.name, paths[0], orNone(r.variables()))
		return ""
	}
	return filled.String()
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// variable returns a variable of the file.
func (r *reader) variable(name string) (string, bool) {
	value, is := r.env[name]
	return value, is
}

// variables lists the variables of the file.
func (r *reader) variables() (names []string) {
	for _, v := range r.file.Env {
		names = append(names, v.Name)
	}
	return names
}

// whole reads a whole number of a range; without one it returns the default.
func (r *reader) whole(p *pair, least, most int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	s := r.constant(p)
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		r.wrong(p.value.at, "%s is %s: give a whole number from %d to %d", p.name, quoteOr(s, p.value), least, most)
		return otherwise
	}
	return n
}

func quoteOr(s string, n *node) string {
	if s == "" {
		return n.kind.String()
	}
	return strconv.Quote(clip(s))
}

// flag reads true or false.
func (r *reader) flag(p *pair, otherwise bool) bool {
	if p == nil {
		return otherwise
	}
	if p.value.kind != boolean {
		r.wrong(p.value.at, "%s: write true or false", p.name)
		return otherwise
	}
	return p.value.text == "true"
}

// maxTimeout is the longest time that a file may give.
const maxTimeout = 30 * 24 * time.Hour

// duration reads a number of seconds, or a duration such as 5m.
func (r *reader) duration(p *pair) time.Duration {
	if p == nil {
		return 0
	}
	s := r.constant(p)
	if _, number := items.ParseNumber(s); number {
		s += "s"
	}
	d, err := filter.ParseDuration(s)
	if err != nil || d < time.Millisecond || d > maxTimeout {
		r.wrong(p.value.at, "%s is %s: give seconds, or a duration such as 90s or 5m, up to 30d", p.name, quoteOr(s, p.value))
		return 0
	}
	return d
}

// share reads a number of a range, perhaps with a percent sign.
func (r *reader) share(p *pair, most float64, otherwise float64) float64 {
	if p == nil {
		return otherwise
	}
	s := r.constant(p)
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n <= most) {
		r.wrong(p.value.at, "%s is %s: give a number from 0 to %g", p.name, quoteOr(s, p.value), most)
		return otherwise
	}
	return n
}

// same takes the pair of two keys that mean the same. Two values are refused.
func (r *reader) same(a, b *pair) *pair {
	if a == nil {
		return b
	}
	if b != nil && (a.value.kind != b.value.kind || a.value.text != b.value.text) {
		first, second := a, b
		if first.at.Line > second.at.Line {
			first, second = second, first
		}
		r.wrong(second.at, "%s is %s here, and %s is %s on line %d: give one", second.name, quoteOr(second.value.text, second.value),
			first.name, quoteOr(first.value.text, first.value), first.at.Line)
	}
	return a
}
