package broker

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
)

// A letter that this package wrote brings its earlier failures along, and the whole of its last
// one.
func TestAdoptedWithItsHistory(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	var list []nixie.Failure
	for n := range 3 {
		list = append(list, nixie.Failure{
			Generation: 1, Attempt: n + 1, StartedAt: at, FailedAt: at.Add(time.Second), Took: time.Second, Class: nixie.ClassTransient,
			Reason: nixie.ReasonTimeout, Type: "E", Text: fmt.Sprint("attempt ", n, " ", string(bytes.Repeat([]byte("x"), 1_000))),
			Worker: "w", Decision: nixie.Retry,
		})
		at = at.Add(time.Minute)
	}
	newest := &list[2]
	newest.Stack, newest.Decision = "at x", nixie.Bury
	w := headerWriter{}
	w.text(HeaderTopic, "in")
	w.text(HeaderFailureReason, "transient_max_retries")
	w.failure(newest)
	w.counts(5, 2)
	w.history(list, 2)
	r := &Record{Channel: "in.dlq", ID: [16]byte{1}, Timestamp: at, Headers: w.headers}
	l := Adopted("kafka", r, "")
	if err := check.Letter(&l); err != nil || len(l.History) != 3 || l.HistoryDropped != 2 || l.Message.Crashes != 2 ||
		l.Message.Attempts != 5 {
		t.Fatalf("%v: %d failures, %d dropped, %d attempts, %d crashes", err, len(l.History), l.HistoryDropped, l.Message.Attempts,
			l.Message.Crashes)
	}
	for n, f := range l.History {
		if f.Attempt != n+1 || f.Took != time.Second || f.Worker != "w" || f.Reason != nixie.ReasonTimeout ||
			!f.FailedAt.Equal(list[n].FailedAt) {
			t.Errorf("failure %d: %+v", n, f)
		}
	}
	if got := &l.History[2]; got.Text != newest.Text || got.Stack != "at x" || got.Decision != nixie.Bury {
		t.Errorf("the newest: %+v", got)
	}
	for _, text := range []string{`{"failures":[{"class":"?"},{"took_ns":-1}]}`, `{"dropped":-7,"failures":[]}`, `{`,
		`{"dropped":99999999999999999999,"failures":[{},{}]}`} {
		r.Headers[len(r.Headers)-1].Value = []byte(text)
		l := Adopted("kafka", r, "")
		if err := check.Letter(&l); err != nil || len(l.History) != 1 || l.History[0].Text != newest.Text {
			t.Errorf("%s: %+v, %v", text, l.History, err)
		}
	}
}

// An office takes what fits of a letter that is too large. Headers tell what is missing, and a
// redrive from the office is refused the rest.
func TestTooLargeForAnOffice(t *testing.T) {
	r := &Record{Channel: "in.dlq", ID: [16]byte{1}, Timestamp: time.UnixMilli(1_700_000_000_000), Key: make([]byte, nixie.MaxHeaders+3),
		Value: make([]byte, nixie.MaxBody+7)}
	for range 100_000 {
		r.Headers = append(r.Headers, RecordHeader{"h", []byte{1}})
	}
	l := Adopted("kafka", r, "")
	if err := check.Letter(&l); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, h := range l.Message.Headers {
		said[h.Name] = h.Value
	}
	if said[HeaderBytesLeftOut] != "10" || said[HeaderLeftOut] == "" || len(l.Message.Body) != nixie.MaxBody ||
		len(l.Message.Origin.Key) != nixie.MaxHeaders {
		t.Errorf("left out: %s bytes, %s headers", said[HeaderBytesLeftOut], said[HeaderLeftOut])
	}
	if back := FromLetter(&l); !back.Cut {
		t.Error("it seems to be whole")
	}
	if back := FromRecord(r); back.Cut || len(back.Value) != nixie.MaxBody+7 || len(back.Key) != nixie.MaxHeaders+3 ||
		len(back.Headers) != 100_000 {
		t.Error("its record is cut")
	}
}
