package items

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// selector is one step of a JSON path.
type selector struct {
	kind         selectorKind
	name         string
	from, to, by int64  // of an index (from) or a slice; to < 0 means no end
	text         string // the path up to and with this step
}

type selectorKind int8

const (
	byName selectorKind = iota
	byIndex
	bySlice
	wildcard
	element // of the array that a path without a wildcard leads to
)

// opens reports whether the step enters an object or array that begins with c.
func (s *selector) opens(c byte) bool {
	switch s.kind {
	case byName:
		return c == '{'
	case wildcard:
		return c == '{' || c == '['
	}
	return c == '['
}

func (s *selector) matches(i int64) bool {
	switch s.kind {
	case byIndex:
		return i == s.from
	case bySlice:
		return i >= s.from && (s.to < 0 || i < s.to) && (i-s.from)%s.by == 0
	}
	return true
}

// maxPathSteps limits the steps of a JSON path.
const maxPathSteps = 100

// readPath reads Options.JSONPath.
func (r *Reader) readPath() error {
	text := r.opts.JSONPath
	if text != "" && r.format != JSON {
		if r.format != Auto && r.format != "" {
			return nixie.Errorf(nixie.CodeInvalid, "a JSON path chooses from a JSON document, but the format is %s: leave one of them out",
				r.format)
		}
		r.format = JSON
	}
	if text == "" {
		text = "$"
	}
	path, err := parsePath(text)
	if err != nil {
		return err
	}
	for _, s := range path {
		if s.kind == wildcard || s.kind == bySlice {
			r.path = path
			return nil
		}
	}
	r.path = append(path, selector{kind: element, text: text})
	return nil
}

// CheckPath checks a JSON path. Errors are of [nixie.CodeInvalid].
func CheckPath(text string) error {
	_, err := parsePath(text)
	return err
}

// parsePath reads the subset of RFC 9535 that [Open] names.
func parsePath(text string) ([]selector, error) {
	p := pathParser{text: text}
	if !strings.HasPrefix(text, "$") {
		return nil, p.fail("a path begins with $, as in $.items")
	}
	p.at = 1
	var path []selector
	for p.at < len(text) {
		if len(path) == maxPathSteps {
			return nil, p.fail("a path has at most %d steps", maxPathSteps)
		}
		s, err := p.step()
		if err != nil {
			return nil, err
		}
		s.text = text[:p.at]
		path = append(path, s)
	}
	return path, nil
}

type pathParser struct {
	text string
	at   int
}

func (p *pathParser) fail(format string, args ...any) error {
	return nixie.Errorf(nixie.CodeInvalid, "JSON path, column %d: %s%s", p.at+1, fmt.Sprintf(format, args...),
		excerpt([]byte(p.text), p.at))
}

const pathHelp = "want .name, ['name'], [3], [*] or [from:to]; for filters, .. and negative numbers choose the items with jq first"

func (p *pathParser) step() (selector, error) {
	rest := p.text[p.at:]
	switch {
	case strings.HasPrefix(rest, "[") && len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"'):
		return p.quotedName()
	case strings.HasPrefix(rest, "["):
		return p.bracket()
	case strings.HasPrefix(rest, ".*"):
		p.at += 2
		return selector{kind: wildcard}, nil
	case !strings.HasPrefix(rest, "."):
		return selector{}, p.fail(pathHelp)
	}
	n := 1
	for n < len(rest) && isNameByte(rest[n], n == 1) {
		n++
	}
	if n == 1 {
		return selector{}, p.fail(pathHelp)
	}
	p.at += n
	return selector{kind: byName, name: rest[1:n]}, nil
}

func isNameByte(c byte, first bool) bool {
	return c == '_' || c >= 0x80 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}

// quotedName reads ['name'] or ["name"]. A backslash in it keeps the next character as it is.
func (p *pathParser) quotedName() (selector, error) {
	quote := p.text[p.at+1]
	var name strings.Builder
	for i := p.at + 2; i < len(p.text); i++ {
		c := p.text[i]
		switch {
		case c == '\\' && i+1 < len(p.text) && strings.IndexByte(`'"\/`, p.text[i+1]) >= 0:
			i++
			name.WriteByte(p.text[i])
		case c == '\\':
			p.at = i
			return selector{}, p.fail(`in a name a backslash is followed by ', ", \ or / only: write other characters as they are`)
		case c == quote && i+1 < len(p.text) && p.text[i+1] == ']':
			p.at = i + 2
			return selector{kind: byName, name: name.String()}, nil
		case c == quote:
			p.at = i + 1
			return selector{}, p.fail("want ] after the name; several names at once are not supported")
		default:
			name.WriteByte(c)
		}
	}
	return selector{}, p.fail("the name that begins here is not closed")
}

func (p *pathParser) bracket() (selector, error) {
	inner, _, ok := strings.Cut(p.text[p.at+1:], "]")
	if !ok {
		return selector{}, p.fail("the bracket that begins here is not closed")
	}
	s := selector{kind: wildcard}
	if trimmed := strings.TrimSpace(inner); trimmed != "*" {
		parts := strings.Split(trimmed, ":")
		s = selector{kind: bySlice, to: -1, by: 1}
		if len(parts) == 1 {
			s.kind = byIndex
		}
		for i, part := range parts {
			part = strings.TrimSpace(part)
			if part == "" && s.kind == bySlice {
				continue
			}
			n, err := strconv.ParseUint(part, 10, 53)
			if err != nil || i > 2 || i == 2 && n == 0 {
				return selector{}, p.fail(pathHelp)
			}
			*[]*int64{&s.from, &s.to, &s.by}[i] = int64(n)
		}
		if len(parts) > 3 {
			return selector{}, p.fail(pathHelp)
		}
	}
	p.at += len(inner) + 2
	return s, nil
}
