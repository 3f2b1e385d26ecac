// Package failurejson writes failures as JSON. Its output has the same bytes as that of
// encoding/json, for a fraction of the time: each failed attempt writes one.
package failurejson

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// Append adds the JSON of f to a text. It fails when encoding/json does: for a time without a form
// in RFC 3339. It is safe for concurrent use.
func Append(to []byte, f *nixie.Failure) ([]byte, error) {
	t := writer{to: to}
	t.number(`{"generation":`, int64(f.Generation))
	t.number(`,"attempt":`, int64(f.Attempt))
	t.time(`,"started_at":`, f.StartedAt)
	t.time(`,"failed_at":`, f.FailedAt)
	t.string(`,"class":`, string(f.Class))
	t.string(`,"reason":`, string(f.Reason))
	t.string(`,"type":`, f.Type)
	t.string(`,"message":`, f.Text)
	t.list(`,"context":`, f.Context)
	t.string(`,"stack":`, f.Stack)
	t.string(`,"step":`, f.Step)
	if f.Group != "" {
		t.string(`,"group":`, f.Group)
	}
	t.string(`,"worker":`, f.Worker)
	t.string(`,"node":`, f.Node)
	if f.ExitCode != nil {
		t.number(`,"exit_code":`, int64(*f.ExitCode))
	} else {
		t.write(`,"exit_code":null`)
	}
	t.string(`,"log_location":`, f.LogLocation)
	t.list(`,"steps":`, f.Steps)
	t.string(`,"decision":`, string(f.Decision))
	if !f.NextAt.IsZero() {
		t.time(`,"next_at":`, f.NextAt)
	}
	if len(f.Attachments) > 0 {
		t.write(`,"attachments":`)
		t.marshal(f.Attachments)
	}
	t.write("}")
	return t.to, t.err
}

// writer holds the JSON text so far, and the first error.
type writer struct {
	to  []byte
	err error
}

func (t *writer) write(s string) { t.to = append(t.to, s...) }

func (t *writer) number(key string, n int64) {
	t.write(key)
	t.to = strconv.AppendInt(t.to, n, 10)
}

func (t *writer) time(key string, at time.Time) {
	t.write(key)
	t.write(`"`)
	var err error
	if t.to, err = at.AppendText(t.to); err != nil {
		t.fail(err)
	}
	t.write(`"`)
}

func (t *writer) string(key, value string) {
	t.write(key)
	t.quote(value)
}

func (t *writer) list(key string, values []string) {
	t.write(key)
	if values == nil {
		t.write("null")
		return
	}
	t.write("[")
	for i, value := range values {
		if i > 0 {
			t.write(",")
		}
		t.quote(value)
	}
	t.write("]")
}

func (t *writer) quote(value string) {
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			t.marshal(value)
			return
		}
	}
	t.write(`"`)
	t.write(value)
	t.write(`"`)
}

// marshal writes a value with encoding/json.
func (t *writer) marshal(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		t.fail(err)
	}
	t.to = append(t.to, data...)
}

func (t *writer) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
