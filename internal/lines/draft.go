package lines

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// draft is a message on a line of nixie enqueue --jsonl. Flags give the fields that it does not
// have.
type draft struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Key        string          `json:"key"`
	Stream     string          `json:"stream"`
	DedupeKey  string          `json:"dedupe_key"`
	Body       json.RawMessage `json:"body"`        // a JSON string is the body itself; other JSON is the body as it is written
	BodyBase64 *string         `json:"body_base64"` // for a body that is no text
	Headers    draftHeaders    `json:"headers"`
	Priority   *int            `json:"priority"`
	Delay      string          `json:"delay"`
	NotBefore  *time.Time      `json:"not_before"`
	ExpiresAt  *time.Time      `json:"expires_at"`
}

// ParseDraft makes a message from a line of nixie enqueue --jsonl and from the flags. The error
// tells a person what is wrong.
func ParseDraft(line []byte, flags nixie.Message) (nixie.Message, error) {
	if !utf8.Valid(line) {
		return flags, errors.New("not valid UTF-8, which JSON has to be")
	}
	var d draft
	if err := readDraft(line, &d, ""); err != nil {
		return flags, err
	}
	return d.message(flags)
}

// readDraft reads a draft, or what has the fields of one and more, which are named for people.
func readDraft(line []byte, into any, more string) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return draftError(line, err, more)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the object: write one object in a line")
	}
	return nil
}

// message makes a message of the draft and of the flags.
func (d *draft) message(flags nixie.Message) (nixie.Message, error) {
	m := flags
	for _, field := range [...]struct {
		into  *string
		value string
	}{{&m.Type, d.Type}, {&m.Key, d.Key}, {&m.Stream, d.Stream}, {&m.DedupeKey, d.DedupeKey}} {
		if field.value != "" {
			*field.into = field.value
		}
	}
	if d.ID != "" {
		id, err := nixie.ParseID(d.ID)
		if err != nil {
			return m, fmt.Errorf("id: %w", err)
		}
		m.ID = id
	}
	if d.Priority != nil {
		m.Priority = *d.Priority
	}
	m.Headers = append(append([]nixie.Header(nil), flags.Headers...), d.Headers...)
	if err := d.readTimes(&m); err != nil {
		return m, err
	}
	if err := d.readBody(&m); err != nil {
		return m, err
	}
	return m, m.Check()
}

// draftError explains a bad line without the words of the decoder.
func draftError(line []byte, err error, more string) error {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		return errors.New(text + ": the fields are " + more + "id, type, key, stream, dedupe_key, body, body_base64, headers, priority, " +
			"delay, not_before and expires_at")
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return fmt.Errorf("%s is a JSON %s: want %s", kind.Field, kind.Value, kind.Type)
	}
	if wrong := itemfile.Decode(line, new(json.RawMessage), false); wrong != nil {
		text = wrong.Error()
	}
	return errors.New("want a JSON object: " + text)
}

func (d *draft) readTimes(m *nixie.Message) error {
	if d.Delay != "" && d.NotBefore != nil {
		return errors.New("delay and not_before say the same: give one")
	}
	if d.Delay != "" {
		delay, err := filter.ParseDuration(d.Delay)
		if err != nil {
			return fmt.Errorf("delay is %q: give a duration such as 90s, 1h30m or 2d", d.Delay)
		}
		m.Delay, m.NotBefore = delay, time.Time{}
	}
	if d.NotBefore != nil {
		m.Delay, m.NotBefore = 0, *d.NotBefore
	}
	if d.ExpiresAt != nil {
		m.ExpiresAt = *d.ExpiresAt
	}
	return nil
}

func (d *draft) readBody(m *nixie.Message) (err error) {
	switch {
	case d.BodyBase64 != nil && len(d.Body) > 0:
		return errors.New("body and body_base64 say the same: give one")
	case d.BodyBase64 != nil:
		if m.Body, err = base64.StdEncoding.DecodeString(*d.BodyBase64); err != nil {
			return errors.New("body_base64 is not base64")
		}
	case bytes.HasPrefix(d.Body, []byte(`"`)):
		var text string
		err = json.Unmarshal(d.Body, &text)
		m.Body = []byte(text)
	case len(d.Body) > 0 && string(d.Body) != "null":
		m.Body = d.Body
	}
	return err
}

// draftHeaders reads headers as an object of strings, or as a list of objects with name and value,
// as nixie message show writes them.
type draftHeaders []nixie.Header

// UnmarshalJSON implements json.Unmarshaler.
func (h *draftHeaders) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, (*[]nixie.Header)(h))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value string
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("header %q is no text", name)
		}
		*h = append(*h, nixie.Header{Name: fmt.Sprint(name), Value: value})
	}
	return nil
}
