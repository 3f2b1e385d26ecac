// Package failurejson writes failures as JSON: byte for byte what encoding/json makes
// of a [nixie.Failure], for a fraction of its time. There is one for each attempt that
// fails.
package failurejson

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// Append adds the JSON of f to a text. It fails where encoding/json does: for a time
// that RFC 3339 has no form of. It is safe for concurrent use.
func Append(to []byte, f *nixie.Failure) ([]byte, error) {
	t := text{to: to}
	t.number(`{"generation":`, int64(f.Generation))
	t.number(`,"attempt":`, int64(f.Attempt))
	t.moment(`,"started_at":`, f.StartedAt)
	t.moment(`,"failed_at":`, f.FailedAt)
	t.string(`,"class":`, string(f.Class))
	t.string(`,"reason":`, string(f.Reason))
	t.string(`,"type":`, f.Type)
	t.string(`,"message":`, f.Text)
	t.list(`,"context":`, f.Context)
	t.string(`,"stack":`, f.Stack)
	t.string(`,"step":`, f.Step)
	t.string(`,"worker":`, f.Worker)
	t.string(`,"node":`, f.Node)
	if f.ExitCode != nil {
		t.number(`,"exit_code":`, int64(*f.ExitCode))
	} else {
		t.put(`,"exit_code":null`)
	}
	t.string(`,"log_location":`, f.LogLocation)
	t.list(`,"steps":`, f.Steps)
	t.string(`,"decision":`, string(f.Decision))
	if !f.NextAt.IsZero() {
		t.moment(`,"next_at":`, f.NextAt)
	}
	if len(f.Attachments) > 0 {
		t.put(`,"attachments":`)
		t.plainly(f.Attachments)
	}
	t.put("}")
	return t.to, t.err
}

// text is a JSON text while it is written, and the first error.
type text struct {
	to  []byte
	err error
}

func (t *text) put(s string) { t.to = append(t.to, s...) }

func (t *text) number(key string, n int64) {
	t.put(key)
	t.to = strconv.AppendInt(t.to, n, 10)
}

func (t *text) moment(key string, at time.Time) {
	t.put(key)
	t.put(`"`)
	var err error
	if t.to, err = at.AppendText(t.to); err != nil {
		t.fail(err)
	}
	t.put(`"`)
}

func (t *text) string(key, value string) {
	t.put(key)
	t.quote(value)
}

func (t *text) list(key string, values []string) {
	t.put(key)
	if values == nil {
		t.put("null")
		return
	}
	t.put("[")
	for i, value := range values {
		if i > 0 {
			t.put(",")
		}
		t.quote(value)
	}
	t.put("]")
}

func (t *text) quote(value string) {
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			t.plainly(value)
			return
		}
	}
	t.put(`"`)
	t.put(value)
	t.put(`"`)
}

// plainly leaves a value to encoding/json.
func (t *text) plainly(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		t.fail(err)
	}
	t.to = append(t.to, data...)
}

func (t *text) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}
