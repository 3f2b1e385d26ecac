package itemfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Decode reads one JSON value; its errors name the fields of the file. With strict it refuses
// unknown fields, so that nothing is dropped. A byte order mark is skipped.
func Decode(raw []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		return nixie.Errorf(nixie.CodeInvalid, "text after the JSON value: remove it")
	}
	var kind *json.UnmarshalTypeError
	var moment *time.ParseError
	switch {
	case errors.As(err, &moment):
		return nixie.Errorf(nixie.CodeInvalid, "a time is %q: write it like 2026-01-31T12:00:00Z", moment.Value)
	case errors.As(err, &kind):
		field := kind.Field
		if field == "" {
			field = "the record"
		}
		return nixie.Errorf(nixie.CodeInvalid, "%s is a JSON %s, which cannot be a value of type %s", field, kind.Value, kind.Type)
	}
	if text := noJSON(err); text != "" {
		return nixie.Errorf(nixie.CodeInvalid, "%s", text)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		text += ": remove it, or import with the version of nixie that wrote it"
	}
	return nixie.Errorf(nixie.CodeInvalid, "%s", text)
}

// noJSON words an error of encoding/json about a text that is not JSON; other errors have no words.
func noJSON(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the JSON value ends too early: it was cut off"
	case errors.As(err, &syntax):
		text, _, _ := strings.Cut(syntax.Error(), " looking for")
		return fmt.Sprintf("it is not JSON: %s at byte %d", text, syntax.Offset)
	}
	return ""
}
