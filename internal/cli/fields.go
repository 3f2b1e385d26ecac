package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// jsonField is a member of the JSON of a view.
type jsonField struct {
	name  string
	index []int
	kind  reflect.Kind // of the value, or of the value that it points at
}

// jsonFields lists the members of a view in their order in JSON, including those of embedded
// structs without a name.
func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		default:
			if name == "" {
				name = f.Name
			}
			fields = append(fields, jsonField{name, []int{i}, pointedAt(f.Type).Kind()})
		}
	}
	return fields
}

func pointedAt(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func (f jsonField) isNumber() bool { return f.kind >= reflect.Int && f.kind <= reflect.Float64 }

// text writes the member of a view: a string as it is, null as nothing, and everything else as
// JSON.
func (f jsonField) text(view reflect.Value) (string, error) {
	v := view.FieldByIndex(f.index)
	if !v.CanInterface() {
		return "", fmt.Errorf("%s cannot be read", f.name)
	}
	data, err := encode(v.Interface())
	if err != nil {
		return "", err
	}
	s := string(data)
	switch {
	case s == "null":
		return "", nil
	case strings.HasPrefix(s, `"`):
		return s, json.Unmarshal(data, &s)
	}
	return s, nil
}

// numberText matches a number, of any size.
var numberText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
})

// neutral keeps a spreadsheet from reading a text as a formula.
func neutral(cell string) string {
	if !strings.ContainsAny(cell[:min(len(cell), 1)], "=+-@\t\r\n") && !wideFormula(cell) {
		return cell
	}
	if numberText().MatchString(cell) {
		return cell
	}
	return "'" + cell
}

// wideFormula reports whether a text begins with a wide sign that some spreadsheets read as the
// narrow one.
func wideFormula(cell string) bool {
	for _, sign := range [...]string{"＝", "＋", "－", "＠"} {
		if strings.HasPrefix(cell, sign) {
			return true
		}
	}
	return false
}
