package items

import "encoding/json"

// Stored is the body of an item that a store kept.
type Stored struct {
	body []byte
	json bool
}

// OpenStored opens a stored body. Other producers may have stored any bytes, so a body that is not
// JSON has only the field [LineField].
func OpenStored(body []byte, line bool) Stored {
	return Stored{body, !line && json.Valid(body)}
}

// Field returns a field as [Item.Field] does; the empty path returns the whole body.
func (s Stored) Field(path string) (string, bool) {
	switch {
	case path == "":
		return string(s.body), true
	case s.json:
		return lookup(s.body, path)
	}
	return string(s.body), path == LineField
}

// Value returns a field as Field does, and an array or object as it is written.
func (s Stored) Value(path string) (string, bool) {
	if text, ok := s.Field(path); ok || !s.json {
		return text, ok
	}
	value := find(s.body, path)
	return string(value), len(value) > 0
}

// Scalars calls f with the name and text of each scalar member of an object, in order. For a plain
// line it calls f with the line.
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
