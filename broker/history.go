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

// Bounds of a history that travels with a record.
const (
	maxStory     = 8 << 10 // bytes of all of it
	maxStoryText = 256     // bytes of the text of one failure
)

// story is a history in a header: what is long about a failure is left out.
type story struct {
	Dropped  int       `json:"dropped,omitempty"`
	Failures []chapter `json:"failures"`
}

type chapter struct {
	nixie.Failure
	Took time.Duration `json:"took_ns,omitempty"`
}

// history writes the failures of a message. The first one and the newest stay.
func (w *writer) history(list []nixie.Failure, dropped int) {
	if len(list) == 0 {
		return
	}
	for {
		text, err := appendStory(w.values, list, dropped)
		if err != nil {
			return // of plain values there always is one
		}
		if len(text)-len(w.values) <= maxStory {
			w.value(HeaderHistory, text)
			return
		}
		if len(list) <= 2 {
			return // names without a bound; the headers of the newest one say enough
		}
		list = slices.Concat(list[:1], list[2:])
		dropped++
	}
}

// appendStory makes the JSON of a story.
func appendStory(to []byte, list []nixie.Failure, dropped int) ([]byte, error) {
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
		f.Text, f.Stack, f.Context, f.Steps, f.Attachments = cut(f.Text, maxStoryText), "", nil, nil, nil
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

// readHistory reads what history wrote; what is no such thing says nothing.
func readHistory(headers []RecordHeader) (list []nixie.Failure, dropped int) {
	text, _ := last(headers, HeaderHistory)
	var s story
	if len(text) > maxStory || json.Unmarshal([]byte(text), &s) != nil {
		return nil, 0
	}
	for n := range s.Failures {
		f := s.Failures[n].Failure
		f.Took, f.Text = s.Failures[n].Took, strings.ToValidUTF8(f.Text, "")
		list = append(list, f)
	}
	return list, min(max(s.Dropped, 0), maxCount)
}

// steps writes the steps that are done.
func (w *writer) steps(list []string) {
	if len(list) == 0 {
		return
	}
	if text, err := json.Marshal(list); err == nil { // a list of texts always has one
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
