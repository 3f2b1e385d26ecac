package lines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
)

// MaxAnswer limits the bytes of a line of a process, its end included.
const MaxAnswer = 20 << 20

// Ready is the first line of a process.
const Ready = `{"ready":true}`

// shown limits what an error shows of a line.
const shown = 200

// message is a line for a process. All of its fields are always there.
type message struct {
	ID         string         `json:"id"`
	Queue      string         `json:"queue"`
	Type       string         `json:"type"`
	Key        string         `json:"key"`
	Stream     string         `json:"stream"`
	Attempt    int            `json:"attempt"`
	Generation int            `json:"generation"`
	Redrives   int            `json:"redrives"`
	Lease      int64          `json:"lease"`
	Steps      []string       `json:"steps"`
	Headers    []nixie.Header `json:"headers"`
	Body       *string        `json:"body"`        // null if it is no text
	BodyBase64 []byte         `json:"body_base64"` // null if it is text
	Deadline   *time.Time     `json:"deadline"`    // null if there is none
	Folder     string         `json:"folder"`      // empty: that of the process
}

// Append adds the line of a delivery to b, its end included. The work on it is done in folder;
// empty is that of the process. A zero deadline is none.
func Append(b []byte, d *nixie.Delivery, folder string, deadline time.Time) ([]byte, error) {
	m := message{
		ID: d.ID.String(), Queue: d.Queue, Type: d.Type, Key: d.Key, Stream: d.Stream, Attempt: d.Attempts, Generation: d.Generation,
		Redrives: d.Redrives, Lease: d.Lease.Number, Steps: d.Steps, Headers: d.Headers, Folder: folder,
	}
	if utf8.Valid(d.Body) {
		body := string(d.Body)
		m.Body = &body
	} else {
		m.BodyBase64 = d.Body
	}
	if m.Steps == nil {
		m.Steps = []string{}
	}
	if m.Headers == nil {
		m.Headers = []nixie.Header{}
	}
	if !deadline.IsZero() {
		at := deadline.UTC()
		m.Deadline = &at
	}
	to := bytes.NewBuffer(b)
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(&m)
	return to.Bytes(), err
}

// Answer is a line of a process about its message.
type Answer struct {
	ID       string
	Progress bool            // the message goes on: of the verdict only Steps are set
	Verdict  command.Verdict // Complete if the line has no outcome
	Then     []nixie.Message // to be enqueued with a success
	Result   json.RawMessage // as it is written; nil if there is none
}

// Parse reads a line of a process that has a message. It has the fields of a verdict, see
// [command.Verdict], and these, of which id alone is required:
//
//	"id": "…"           of the message that it is about
//	"then": [{…}, …]    messages to enqueue with a success, at most [nixie.MaxThen]
//	"result": …         what the sender of the message wants, or what is shown of it
//	"progress": true    the message goes on; only id and steps may be with it
//
// A message of then has the fields of a line of nixie enqueue --jsonl, see [ParseDraft],
// and queue.
// Errors are of [nixie.CodeInvalid] or [nixie.CodeLimit], name the field, and show the line.
func Parse(line []byte, now time.Time) (Answer, error) {
	var a Answer
	var others []string // fields that do not go with progress
	var err error
	a.Verdict, err = command.ParseFields(line, now, func(name string, value *json.Decoder) (bool, error) {
		if name != "id" && name != "progress" && name != "steps" {
			others = append(others, name)
		}
		return a.field(name, value)
	})
	switch {
	case err != nil:
	case a.ID == "":
		err = nixie.Errorf(nixie.CodeInvalid, "field id is missing: give the id of the message that the line is about")
	case a.Progress && len(others) > 0:
		err = nixie.Errorf(nixie.CodeInvalid, "field %s does not go with progress: only id and steps do", strconv.Quote(others[0]))
	case len(a.Then) > 0 && a.Verdict.Outcome != "" && a.Verdict.Outcome != nixie.Complete:
		err = nixie.Errorf(nixie.CodeInvalid, "field then goes with outcome complete, not %s", a.Verdict.Outcome)
	}
	if err != nil {
		return Answer{}, Wrong(line, err)
	}
	if a.Verdict.Outcome == "" {
		a.Verdict.Outcome = nixie.Complete
	}
	return a, nil
}

func (a *Answer) field(name string, value *json.Decoder) (known bool, err error) {
	switch name {
	case "id":
		return true, decode(name, value, &a.ID, "a text")
	case "progress":
		if err = decode(name, value, &a.Progress, "true"); err == nil && !a.Progress {
			err = nixie.Errorf(nixie.CodeInvalid, "field progress is false: leave it out of an answer")
		}
		return true, err
	case "result":
		if err = decode(name, value, &a.Result, "any JSON"); string(a.Result) == "null" {
			a.Result = nil
		}
		return true, err
	case "then":
		var all []json.RawMessage
		if err = decode(name, value, &all, "a list of messages"); err == nil {
			a.Then, err = follow(all)
		}
		return true, err
	}
	return false, nil
}

// Text returns a result that is a JSON string as its text, and other JSON as it is written.
func (a *Answer) Text() []byte {
	var text string
	if len(a.Result) == 0 || a.Result[0] != '"' || json.Unmarshal(a.Result, &text) != nil {
		return a.Result
	}
	return []byte(text)
}

// following is an element of then.
type following struct {
	Queue string `json:"queue"`
	draft
}

func follow(all []json.RawMessage) (then []nixie.Message, err error) {
	if len(all) > nixie.MaxThen {
		return nil, nixie.Errorf(nixie.CodeLimit, "field then has %d messages, the limit is %d: send one that lists the others",
			len(all), nixie.MaxThen)
	}
	for i, raw := range all {
		var f following
		err := readDraft(raw, &f, "queue, ")
		if err == nil {
			var m nixie.Message
			m, err = f.message(nixie.Message{Queue: f.Queue})
			then = append(then, m)
		}
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "message %d of field then: %w", i+1, err)
		}
	}
	return then, nil
}

func decode(name string, value *json.Decoder, into any, want string) error {
	if err := value.Decode(into); err != nil {
		return nixie.Errorf(nixie.CodeInvalid, "field %s is not %s: %w", name, want, err)
	}
	return nil
}

// CheckReady says what is wrong with the first line of a process.
func CheckReady(line []byte) error {
	var ready struct {
		Ready *bool `json:"ready"`
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&ready); err == nil && ready.Ready != nil && *ready.Ready && !decoder.More() {
		return nil
	}
	return Wrong(line, nixie.Errorf(nixie.CodeInvalid, "the first line has to be %s", Ready))
}

// Wrong makes the error of a line that is none of the protocol. It shows the beginning of the line.
func Wrong(line []byte, why error) error {
	text := line[:min(len(line), shown)]
	mark := ""
	if len(line) > shown {
		mark = "…"
	}
	return fmt.Errorf("the worker wrote a line that is none: %w; the line: %s%s", why, strconv.Quote(string(text)), mark)
}
