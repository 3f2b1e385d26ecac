package items

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Value returns the value of a text of JSON: nil, bool, json.Number, string, []any or
// map[string]any. It returns false for a text that is not one value of JSON. Of members with the
// same name the last counts.
func Value(body []byte) (v any, ok bool) {
	s := scanner{buf: body}
	s.space()
	v, err := s.any()
	s.space()
	return v, err == nil && s.pos == len(body)
}

func (s *scanner) any() (v any, err error) {
	from := s.pos
	switch c, _ := s.peek(); c {
	case '{':
		object := map[string]any{}
		return object, s.members(func(written []byte) (err error) {
			object[unquote(written)], err = s.any()
			return err
		})
	case '[':
		list := []any{}
		err := s.elements(func() error {
			v, err := s.any()
			list = append(list, v)
			return err
		})
		return list, err
	}
	err = s.value()
	switch written := s.buf[from:s.pos]; {
	case err != nil:
	case written[0] == '"':
		v = unquote(written)
	case written[0] == 't' || written[0] == 'f':
		v = written[0] == 't'
	case written[0] != 'n':
		v = json.Number(written)
	}
	return v, err
}

// Rounded finds a number of a text of JSON that another text has at the same spot as the float64
// next to it, because a program between the two lost its digits.
func Rounded(before, after []byte) (was, is string) {
	b, isJSON := Value(before)
	a, still := Value(after)
	if !isJSON || !still {
		return "", ""
	}
	return rounded(b, a)
}

func rounded(before, after any) (was, is string) {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(b)) {
			if was, is := rounded(b[name], a[name]); was != "" {
				return was, is
			}
		}
	case []any:
		a, _ := after.([]any)
		for i := range min(len(a), len(b)) {
			if was, is := rounded(b[i], a[i]); was != "" {
				return was, is
			}
		}
	case json.Number:
		a, _ := after.(json.Number)
		n, ok := ParseNumber(string(b))
		m, both := ParseNumber(string(a))
		if ok && both && n.Compare(m) != 0 && nearest(b) == nearest(a) {
			return string(b), string(a)
		}
	}
	return "", ""
}

// nearest returns the float64 next to a number.
func nearest(n json.Number) float64 {
	f, _ := strconv.ParseFloat(string(n), 64) // infinite beyond its range
	return max(-math.MaxFloat64, min(f, math.MaxFloat64))
}
