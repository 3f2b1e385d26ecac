package items

import "encoding/json"

// Stored is the body of an item that was kept elsewhere and is used again.
type Stored struct {
	body []byte
	json bool
}

// OpenStored looks at a kept body. Whoever put it there may have put anything, so
// that a body that is not JSON has no fields but [LineField].
func OpenStored(body []byte, line bool) Stored {
	return Stored{body, !line && json.Valid(body)}
}

// Field is [Item.Fields] of a kept body; the empty path is all of it.
func (s Stored) Field(path string) (string, bool) {
	switch {
	case path == "":
		return string(s.body), true
	case s.json:
		return lookup(s.body, path)
	}
	return string(s.body), path == LineField
}

// Scalars calls f with the name and text of each scalar member of an object, in
// order, and with the line of a plain one.
func (s Stored) Scalars(f func(name, value string)) {
	if !s.json {
		f(LineField, string(s.body))
		return
	}
	scan := scanner{buf: s.body}
	scan.space()
	if c, _ := scan.peek(); c != '{' {
		return
	}
	_ = scan.members(func(written []byte) error { // it is valid: no error is possible
		name := unquote(append([]byte(nil), written...))
		from := scan.pos
		if err := scan.value(); err != nil {
			return err
		}
		if value := scan.buf[from:scan.pos]; value[0] == '"' {
			f(name, unquote(value))
		} else if value[0] != '{' && value[0] != '[' {
			f(name, string(value))
		}
		return nil
	})
}
