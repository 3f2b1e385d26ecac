package items

import (
	"strconv"
	"strings"
)

// LineField is the only field of a plain line: the line itself.
const LineField = "line"

// TypeLine is the type of a message whose body is a plain line.
const TypeLine = "line"

// HeaderLine is the header of an item with its line in the list.
const HeaderLine = "item-line"

// Field returns the scalar at a path of the item as text: the value of a string, and numbers, true,
// false and null as written. It returns false for an array, an object, and a missing value.
//
// A path is the name of a member, or names and indexes like a.b[0]. A member whose name is the
// whole path comes first, so that a path can name a CSV column "a.b". Of members with the same name
// the last counts.
func (i *Item) Field(path string) (string, bool) {
	if i.plain {
		return string(i.Body), path == LineField
	}
	if i.Bad != nil {
		return "", false
	}
	return lookup(i.Body, path)
}

// lookup returns the scalar at a path of valid JSON.
func lookup(body []byte, path string) (string, bool) {
	value := find(body, path)
	switch {
	case len(value) == 0 || value[0] == '{' || value[0] == '[':
		return "", false
	case value[0] == '"':
		return unquote(value), true
	}
	return string(value), true
}

// find returns the value at a path as written, or nil.
func find(body []byte, path string) []byte {
	value := member(body, path)
	if value != nil || path == "" || !strings.ContainsAny(path, ".[") {
		return value
	}
	value = body
	for rest := path; rest != "" && value != nil; {
		var name string
		var index int
		name, index, rest = cutStep(rest)
		switch {
		case index >= 0:
			value = elementAt(value, index)
		case name != "":
			value = member(value, name)
		default:
			return nil
		}
	}
	return value
}

// cutStep splits the first name or index off a path. It sets neither for a wrong path.
func cutStep(path string) (name string, index int, rest string) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		digits, rest, ok := strings.Cut(inner, "]")
		n, err := strconv.ParseUint(digits, 10, 31)
		if !ok || err != nil || rest != "" && rest[0] != '.' && rest[0] != '[' {
			return "", -1, ""
		}
		if rest == "." {
			return "", -1, ""
		}
		return "", int(n), strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	switch {
	case end < 0:
		return path, -1, ""
	case path[end] == '[':
		return path[:end], -1, path[end:]
	case end+1 == len(path):
		return "", -1, ""
	}
	return path[:end], -1, path[end+1:]
}

// member returns the last member of that name as written; nil if there is none
// or body is no object.
func member(body []byte, name string) []byte {
	s := scanner{buf: body}
	s.space()
	if c, _ := s.peek(); c != '{' {
		return nil
	}
	var value []byte
	err := s.members(func(written []byte) error {
		from := s.pos
		err := s.value()
		if sameName(written, name) {
			value = s.buf[from:s.pos]
		}
		return err
	})
	if err != nil { // not possible for a valid body
		return nil
	}
	return value
}

// elementAt returns an element of an array as written; nil if there is none.
func elementAt(body []byte, index int) []byte {
	s := scanner{buf: body}
	s.space()
	if c, _ := s.peek(); c != '[' {
		return nil
	}
	var value []byte
	err := s.elements(func() error {
		from := s.pos
		err := s.value()
		if index--; index == -1 {
			value = s.buf[from:s.pos]
		}
		return err
	})
	if err != nil {
		return nil
	}
	return value
}
