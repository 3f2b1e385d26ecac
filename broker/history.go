package broker

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Limits of a history in a header.
const (
	maxHistoryBytes = 8 << 10 // of the whole history
	maxHistoryText  = 256     // of the text of one failure
)

// historyJSON is a history in a header. It omits the long parts of failures.
type historyJSON struct {
	Dropped  int           `json:"dropped,omitempty"`
	Failures []failureJSON `json:"failures"`
}

type failureJSON struct {
	nixie.Failure
	Took time.Duration `json:"took_ns,omitempty"`
}

// history writes failures. If they do not fit, the first and the newest ones stay.
func (w *headerWriter) history(list []nixie.Failure, dropped int) {
	if len(list) == 0 {
		return
	}
	for {
		text, err := textOf(list, dropped)
		if err != nil {
			return // cannot happen: the values are plain
		}
		if len(text) <= maxHistoryBytes {
			w.value(HeaderHistory, append(w.values, text...))
			return
		}
		if len(list) <= 2 {
			return // a name is too long; the other headers tell the newest failure
		}
		list = slices.Concat(list[:1], list[2:])
		dropped++
	}
}

// textOf returns the JSON of a history.
func textOf(list []nixie.Failure, dropped int) ([]byte, error) {
	s := historyJSON{Dropped: dropped, Failures: make([]failureJSON, len(list))}
	for n, f := range list {
		f.Text, f.Stack, f.Context, f.Steps, f.Attachments = cut(f.Text, maxHistoryText), "", nil, nil, nil
		s.Failures[n] = failureJSON{f, f.Took}
	}
	return json.Marshal(s)
}

// readHistory reads what history wrote. It returns nothing for anything else.
func readHistory(headers []RecordHeader) (list []nixie.Failure, dropped int) {
	text, _ := headerValue(headers, HeaderHistory)
	var s historyJSON
	if len(text) > maxHistoryBytes || json.Unmarshal([]byte(text), &s) != nil {
		return nil, 0
	}
	for n := range s.Failures {
		f := s.Failures[n].Failure
		f.Took, f.Text = s.Failures[n].Took, strings.ToValidUTF8(f.Text, "")
		list = append(list, f)
	}
	return list, min(max(s.Dropped, 0), maxCount)
}

// steps writes the finished steps.
func (w *headerWriter) steps(list []string) {
	if len(list) == 0 {
		return
	}
	if text, err := json.Marshal(list); err == nil { // a list of strings never fails
		w.text(HeaderSteps, string(text))
	}
}

func readSteps(text string) []string {
	var steps []string
	if json.Unmarshal([]byte(text), &steps) != nil || len(steps) > nixie.MaxSteps {
		return nil
	}
	return steps
}
