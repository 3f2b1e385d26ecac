package broker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/failurejson"
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
		text, err := appendHistory(w.values, list, dropped)
		if err != nil {
			return // cannot happen: the values are plain
		}
		if len(text)-len(w.values) <= maxHistoryBytes {
			w.value(HeaderHistory, text)
			return
		}
		if len(list) <= 2 {
			return // a name is too long; the other headers tell the newest failure
		}
		list = slices.Concat(list[:1], list[2:])
		dropped++
	}
}

// appendHistory appends the JSON of a history.
func appendHistory(to []byte, list []nixie.Failure, dropped int) ([]byte, error) {
	to = append(to, '{')
	if dropped != 0 {
		to = append(strconv.AppendInt(append(to, `"dropped":`...), int64(dropped), 10), ',')
	}
	to = append(to, `"failures":[`...)
	for n := range list {
		if n > 0 {
			to = append(to, ',')
		}
		f := list[n]
		f.Text, f.Stack, f.Context, f.Steps, f.Attachments = cut(f.Text, maxHistoryText), "", nil, nil, nil
		var err error
		if to, err = failurejson.Append(to, &f); err != nil {
			return nil, err
		}
		if f.Took != 0 {
			to = append(strconv.AppendInt(append(to[:len(to)-1], `,"took_ns":`...), int64(f.Took), 10), '}')
		}
	}
	return append(to, "]}"...), nil
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
