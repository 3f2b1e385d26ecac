package lines

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{`{"id":"a"}`, `complete`},
		{`{"id":"a","result":"text"}`, `complete "text"`},
		{`{"id":"a","result":{"b": 1.50}}`, `complete "{\"b\": 1.50}"`},
		{`{"id":"a","result":null}`, `complete`},
		{`{"id":"a","outcome":"retry","retry_after":"9s","reason":"throttled"}`, `retry`},
		{`{"id":"a","outcome":"release","retry_after":9}`, `release`},
		{`{"id":"a","progress":true,"steps":["s"]}`, `progress`},
		{`{"id":"a","then":[{"queue":"q","body":{"n":1}},{"queue":"r","body_base64":"/w=="}]}`, `complete 2`},
		{``, "it ends too early"},
		{`null`, "it is not a JSON object"},
		{`{"id":"a"`, "it ends too early"},
		{`{"id":"a"}{}`, "there is more after the JSON object"},
		{`{"id":"a","id":"b"}`, `field "id" occurs twice`},
		{`{"id":7}`, "field id is not a text"},
		{`{"outcome":"retry"}`, "field id is missing"},
		{`{"id":"a","progress":false}`, "field progress is false"},
		{`{"id":"a","progress":true,"result":"x"}`, `field "result" does not go with progress`},
		{`{"id":"a","status":"done"}`, `field "status" is unknown`},
		{`{"id":"a","then":{}}`, "field then is not a list of messages"},
		{`{"id":"a","then":[{"body":"x"}]}`, "message 1 of field then: queue is empty"},
		{`{"id":"a","then":[{"queue":"q","url":"x"}]}`, "the fields are queue, id, type"},
		{`{"id":"a","then":[` + strings.Repeat(`{"queue":"q"},`, 100) + `{"queue":"q"}]}`, "field then has 101 messages, the limit is 100"},
		{`{"id":"a","outcome":"discard","then":[{"queue":"q"}]}`, "field then goes with outcome complete, not discard"},
		{`{"id":"a","outcome":"bury","retry_after":"9s"}`, "retry_after goes with outcome retry or release"},
		{"{\"id\":\"\xff\"}", "it is not valid UTF-8"},
		{"\ufeff{\"id\":\"a\"}", "it is not valid JSON"},
	} {
		a, err := Parse([]byte(c.line), noon)
		got := string(a.Verdict.Outcome)
		switch {
		case err != nil:
			got = err.Error()
			if !strings.Contains(got, "the worker wrote a line that is none") || !strings.Contains(got, c.want) {
				t.Errorf("%.80s: %s, want %s", c.line, got, c.want)
			}
			continue
		case a.Progress:
			got = "progress"
		case a.Result != nil:
			quoted, _ := json.Marshal(string(a.Text()))
			got += " " + string(quoted)
		case a.Then != nil:
			got += " 2"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.line, got, c.want)
		}
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"text": `"body":"text","body_base64":null,`, "\xff\x00": `"body":null,"body_base64":"/wA=",`, "": `"body":"","body_base64":null,`,
		"<\n>": `"body":"<\n>","body_base64":null,`,
	} {
		line, err := Append(nil, &nixie.Delivery{Message: nixie.Message{Queue: "q", Body: []byte(body)}}, "/a", time.Time{})
		want = `"steps":[],"headers":[],` + want + `"deadline":null,"folder":"/a"}` + "\n"
		if err != nil || !strings.HasSuffix(string(line), want) {
			t.Errorf("%q: %s, %v", body, line, err)
		}
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	for line, ready := range map[string]bool{
		Ready: true, ` { "ready" : true } `: true, "{\"ready\":true}\r": true,
		``: false, `{}`: false, `{"ready":false}`: false, `{"ready":1}`: false, `{"ready":true}{}`: false, `{"ready":true,"id":"a"}`: false,
		"\xff\xfe{\x00": false, `true`: false,
	} {
		if err := CheckReady([]byte(line)); (err == nil) != ready {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// FuzzAppend: each message is one line that JSON reads back as it was.
func FuzzAppend(f *testing.F) {
	f.Add("q", "key", []byte("body"), "name", "value", "step", int64(0))
	f.Add("q\u2028", "\"\\", []byte("\xff\x00"), "a", "b\nc", "<&>", int64(1))
	f.Fuzz(func(t *testing.T, queue, key string, body []byte, name, value, step string, deadline int64) {
		d := nixie.Delivery{Message: nixie.Message{Queue: queue, Key: key, Body: body, Headers: []nixie.Header{{Name: name, Value: value}},
			Steps: []string{step}, Attempts: 3}}
		if (&nixie.Message{Queue: queue, Key: key, Headers: d.Headers}).Check() != nil || !utf8.ValidString(step) {
			t.Skip("such a message is never accepted")
		}
		var at time.Time
		if deadline != 0 {
			at = noon.Add(time.Duration(deadline))
		}
		line, err := Append([]byte("before"), &d, key, at)
		line = bytes.TrimPrefix(line, []byte("before"))
		if err != nil || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("%v: %q", err, line)
		}
		var m message
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&m); err != nil {
			t.Fatal(err)
		}
		text := m.BodyBase64
		if (m.Body != nil) != utf8.Valid(body) {
			t.Fatalf("the body is in the wrong field: %s", line)
		} else if m.Body != nil {
			text = []byte(*m.Body)
		}
		if m.Queue != queue || m.Key != key || m.Folder != key || m.Steps[0] != step ||
			!bytes.Equal(text, body) || !reflect.DeepEqual(m.Headers, d.Headers) ||
			(m.Deadline == nil) != at.IsZero() || m.Deadline != nil && !m.Deadline.Equal(at) {
			t.Fatalf("%s is not %+v", line, d)
		}
	})
}

// FuzzParse: no line breaks the parser, and what it takes keeps to the limits.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"id":"a"}`, `{"id":"a","progress":true,"steps":["s"]}`, `{"id":"a","result":[1,"x"]}`,
		`{"id":"a","then":[{"queue":"q","body":"x","delay":"9s","headers":{"a":"b"}}]}`, Ready,
		`{"id":"a","outcome":"retry","retry_after":"Mon, 02 Jan 2006 15:04:05 GMT"}`, "\xff\xfe{", `{"id":"a","id":"a"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := Parse(line, noon)
		if err != nil {
			if code := nixie.CodeOf(err); code != nixie.CodeInvalid && code != nixie.CodeLimit || !utf8.ValidString(err.Error()) {
				t.Fatalf("%s: %v", code, err)
			}
			return
		}
		if a.ID == "" || a.Verdict.Outcome == "" || a.Progress && (a.Result != nil || a.Then != nil) ||
			len(a.Then) > 0 && a.Verdict.Outcome != nixie.Complete || len(a.Verdict.Steps) > nixie.MaxSteps {
			t.Fatalf("%q is %+v", line, a)
		}
		for i := range a.Then {
			if err := a.Then[i].Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
