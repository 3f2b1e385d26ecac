package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
)

// A failure is kept as JSON but for what has columns of its own. Its keys are those of
// nixie.Failure, and empty values are left out. It is encoded by hand, because each failed attempt
// makes one.

// appendFailure makes the JSON of a failure in an attempt that knew of the steps.
func appendFailure(to []byte, f *nixie.Failure, steps []string) []byte {
	d := failureDoc{append(to, '{')}
	d.number("generation", int64(f.Generation))
	d.number("attempt", int64(f.Attempt))
	d.moment("started_at", f.StartedAt)
	d.moment("failed_at", f.FailedAt)
	d.number("took_ns", int64(f.Took))
	d.text("type", plain(f.Type))
	d.texts("context", f.Context)
	d.text("stack", plain(f.Stack))
	d.text("step", f.Step)
	d.text("group", plain(f.Group))
	d.text("worker", f.Worker)
	d.text("node", f.Node)
	if f.ExitCode != nil {
		d.key("exit_code")
		d.json = strconv.AppendInt(d.json, int64(*f.ExitCode), 10)
	}
	d.text("log_location", f.LogLocation)
	d.texts("steps", steps)
	d.moment("next_at", f.NextAt)
	return append(d.json, '}')
}

// failureDoc is such a text while it is written.
type failureDoc struct{ json []byte }

func (d *failureDoc) key(name string) {
	if d.json[len(d.json)-1] != '{' {
		d.json = append(d.json, ',')
	}
	d.json = append(append(append(d.json, '"'), name...), `":`...)
}

func (d *failureDoc) number(name string, n int64) {
	if n != 0 {
		d.key(name)
		d.json = strconv.AppendInt(d.json, n, 10)
	}
}

func (d *failureDoc) moment(name string, at time.Time) {
	if !at.IsZero() {
		d.key(name)
		d.json = append(at.AppendFormat(append(d.json, '"'), time.RFC3339Nano), '"')
	}
}

func (d *failureDoc) text(name, value string) {
	if value != "" {
		d.key(name)
		d.quote(value)
	}
}

// texts writes a list that is not nil.
func (d *failureDoc) texts(name string, list []string) {
	if list == nil {
		return
	}
	d.key(name)
	d.json = append(d.json, '[')
	for i, value := range list {
		if i > 0 {
			d.json = append(d.json, ',')
		}
		d.quote(value)
	}
	d.json = append(d.json, ']')
}

func (d *failureDoc) quote(value string) {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			d.json = append(d.json, toJSON(false, value)...)
			return
		}
	}
	d.json = append(append(append(d.json, '"'), value...), '"')
}

// decodeFailure reads what appendFailure wrote.
func decodeFailure(text string) (nixie.Failure, error) {
	var kept struct {
		nixie.Failure
		Took time.Duration `json:"took_ns"`
	}
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return nixie.Failure{}, fmt.Errorf("it is no JSON of ours: %w", err)
	}
	kept.Failure.Took = kept.Took
	return kept.Failure, nil
}
