package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// record is a line of the log.
type record = map[string]any

// logged returns the records that do makes at a level.
func logged(t *testing.T, level slog.Level, now time.Time, do func(*nixie.Observer)) []record {
	t.Helper()
	var out bytes.Buffer
	to := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	do(logs{to, func() time.Time { return now }}.observer())
	var all []record
	for from := json.NewDecoder(&out); ; {
		r := record{}
		if err := from.Decode(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func TestLogs(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	id := nixie.ID{15: 7}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	d := &nixie.Delivery{Message: nixie.Message{
		ID: id, Queue: "billing", Type: "invoice", Key: "secret", Body: []byte("secret"), Attempts: 5, Deliveries: 6,
		Headers: []nixie.Header{{Name: "request-id", Value: "r-1"}, {Name: "traceparent", Value: "00-" + trace + "-00f067aa0ba902b7-01"}},
	}}
	failure := &nixie.Failure{Type: "*net.OpError", Reason: nixie.ReasonTimeout, Text: strings.Repeat("ü", 300)}
	burial := &nixie.Burial{Cause: nixie.CauseExhausted, Fingerprint: "v1:abc"}
	died := nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: failure, Burial: burial}
	letter := &nixie.Letter{ID: nixie.ID{15: 9}, Message: d.Message, DiedAt: now.Add(-time.Minute)}
	lost := nixie.Errorf(nixie.CodeLeaseLost, "gone")

	base := record{"queue": "billing", "message_id": id.String(), "type": "invoice", "request_id": "r-1", "trace_id": trace}
	with := func(level, message string, more record) record {
		all := record{"level": level, "msg": message}
		for _, attrs := range []record{base, more} {
			for name, v := range attrs {
				all[name] = v
			}
		}
		return all
	}
	settle := func(st nixie.Settlement, err error) func(*nixie.Observer) {
		return func(o *nixie.Observer) { o.Settled("source", []nixie.Settlement{st}, []error{err}) }
	}
	death := record{
		"source": "source", "delivery_count": 6., "cause": "exhausted", "fingerprint": "v1:abc",
		"error_type": "*net.OpError", "reason": "timeout", "error": strings.Repeat("ü", 250) + "…",
	}
	for name, test := range map[string]struct {
		level slog.Level
		do    func(*nixie.Observer)
		want  []record
	}{
		"death":         {slog.LevelWarn, settle(died, nil), []record{with("WARN", "Message dead-lettered", death)}},
		"death refused": {slog.LevelWarn, settle(died, lost), []record{with("WARN", "Outcome too late", record{"verb": "bury"})}},
		"death unknown": {slog.LevelDebug, settle(died, errors.New("no answer")), nil},
		"death silent":  {slog.LevelError, settle(died, nil), nil},
		"success": {slog.LevelDebug, settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete, Took: time.Second}, nil),
			[]record{with("DEBUG", "Message settled", record{"verb": "complete", "attempts": 5., "took": 1e9})}},
		"success at info": {slog.LevelInfo, settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}, nil), nil},
		"moves": {slog.LevelInfo, func(o *nixie.Observer) {
			o.Moved([]nixie.LetterMove{{Letter: letter, Event: "redrive", Actor: "ann"}, {Letter: letter, Event: "discard", Err: lost}})
		}, []record{with("INFO", "Processing dead letter",
			record{"letter_id": letter.ID.String(), "action": "redrive", "actor": "ann", "age_seconds": 60.})}},
		"notice": {slog.LevelInfo, func(o *nixie.Observer) {
			o.Noticed(nixie.NoticeHandled{Queue: "billing", Message: id, RequestID: "r-1", TraceID: trace, ErrorType: "*net.OpError",
				Age: time.Minute, Took: time.Second, Action: nixie.ActionAlert})
			o.Noticed(nixie.NoticeHandled{Queue: "billing", Message: id, Age: -time.Minute, Action: nixie.ActionReplay})
		}, []record{
			{"level": "INFO", "msg": "Processing dead letter", "queue": "billing", "message_id": id.String(), "request_id": "r-1",
				"trace_id": trace, "error_type": "*net.OpError", "age_seconds": 60., "took": 1e9, "action": "alert"},
			{"level": "INFO", "msg": "Processing dead letter", "queue": "billing", "message_id": id.String(), "age_seconds": 0.,
				"took": 0., "action": "replay"},
		}},
		"lost": {slog.LevelWarn, func(o *nixie.Observer) { o.Lost(d) }, []record{with("WARN", "Lease lost", nil)}},
		"late": {slog.LevelWarn, func(o *nixie.Observer) { o.Late(d, time.Second) },
			[]record{with("WARN", "Handler past its timeout", record{"timeout": 1e9})}},
		"trouble": {slog.LevelError, func(o *nixie.Observer) { o.Trouble("q", lost) },
			[]record{{"level": "ERROR", "msg": "Source failed", "queue": "q", "code": "lease-lost", "error": "gone"}}},
		"connected": {slog.LevelInfo, func(o *nixie.Observer) { o.Connected("q", true); o.Connected("q", false) },
			[]record{{"level": "INFO", "msg": "Source answers", "queue": "q"},
				{"level": "ERROR", "msg": "Source answers no longer", "queue": "q"}}},
		"breaker": {slog.LevelWarn, func(o *nixie.Observer) {
			o.Breaker(nixie.BreakerChange{Queue: "q", Type: "t", Reason: "timeout", State: "open"})
			o.Breaker(nixie.BreakerChange{Queue: "q", State: "closed"})
		}, []record{{"level": "WARN", "msg": "Circuit breaker", "queue": "q", "type": "t", "reason": "timeout", "state": "open"}}},
	} {
		if got := logged(t, test.level, now, test.do); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got, test.want)
		}
	}
}

func FuzzTraceID(f *testing.F) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	zero := strings.Repeat("0", 32)
	for _, parent := range []string{"", "00-" + id + "-00f067aa0ba902b7-01", "00-" + zero + "-1-1", "-" + id + "--", "---"} {
		f.Add(parent)
	}
	f.Fuzz(func(t *testing.T, parent string) {
		got := traceID(parent)
		if got != "" && (len(got) != 32 || strings.Trim(got, "0123456789abcdefABCDEF") != "" || !strings.Contains(parent, "-"+got+"-")) {
			t.Errorf("%q of %q", got, parent)
		}
	})
}
