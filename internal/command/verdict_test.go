//go:build linux

package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

func TestExitToError(t *testing.T) {
	for _, c := range []struct {
		name   string
		result Result
		class  nixie.Class
		reason nixie.Reason
		text   string
	}{
		{"65", Result{ExitCode: 65}, nixie.ClassPermanent, nixie.ReasonValidation, "exit status 65"},
		{"69", Result{ExitCode: 69}, nixie.ClassTransient, nixie.ReasonDependency, "exit status 69"},
		{"75", Result{ExitCode: 75}, nixie.ClassTransient, nixie.ReasonHandler, "exit status 75"},
		{"137", Result{ExitCode: 137}, nixie.ClassTransient, nixie.ReasonResource, "exit status 137"},
		{"77", Result{ExitCode: 77}, nixie.ClassPermanent, nixie.ReasonAuth, "exit status 77"},
		{"78", Result{ExitCode: 78}, nixie.ClassPermanent, nixie.ReasonCommandFailed, "exit status 78"},
		{"124", Result{ExitCode: 124}, nixie.ClassTransient, nixie.ReasonTimeout, "exit status 124"},
		{"126", Result{ExitCode: 126}, nixie.ClassPermanent, nixie.ReasonCommandFailed, "exit status 126"},
		{"127", Result{ExitCode: 127}, nixie.ClassPermanent, nixie.ReasonCommandFailed, "exit status 127"},
		{"128", Result{ExitCode: 128}, nixie.ClassUnknown, nixie.ReasonCommandFailed, "exit status 128"},
		{"139 of a shell", Result{ExitCode: 139}, nixie.ClassUnknown, nixie.ReasonCommandFailed, "exit status 139"},
		{"143 of a shell", Result{ExitCode: 143}, nixie.ClassTransient, nixie.ReasonResource, "exit status 143"},
		{"255", Result{ExitCode: 255}, nixie.ClassUnknown, nixie.ReasonCommandFailed, "exit status 255"},
		{"KILL", Result{ExitCode: 137, Signal: syscall.SIGKILL}, nixie.ClassTransient, nixie.ReasonResource,
			"killed by signal 9 (killed)"},
		{"ABRT", Result{ExitCode: 134, Signal: syscall.SIGABRT}, nixie.ClassUnknown, nixie.ReasonCommandFailed,
			"killed by signal 6 (aborted)"},
		{"signal", Result{ExitCode: 139, Signal: syscall.SIGSEGV}, nixie.ClassUnknown, nixie.ReasonCommandFailed,
			"killed by signal 11 (segmentation fault)"},
		{"signal is no listed code", Result{ExitCode: 131, Signal: syscall.SIGQUIT}, nixie.ClassTransient, nixie.ReasonResource,
			"killed by signal 3 (quit)"},
		{"other", Result{ExitCode: 1}, nixie.ClassUnknown, nixie.ReasonCommandFailed, "exit status 1"},
		{"listed", Result{ExitCode: 3}, nixie.ClassPermanent, nixie.ReasonCommandFailed, "exit status 3"},
		{"timeout", Result{ExitCode: 0, TimedOut: true, Timeout: time.Second}, nixie.ClassTransient, nixie.ReasonTimeout,
			"timed out after 1s"},
		{"timeout beats exit", Result{ExitCode: 65, TimedOut: true}, nixie.ClassTransient, nixie.ReasonTimeout, "timed out"},
		{"canceled", Result{Signal: syscall.SIGTERM, ExitCode: 143, Canceled: true}, nixie.ClassTransient, nixie.ReasonCanceled,
			"canceled"},
	} {
		err := c.result.Err([]int{3, 131})
		o := nixie.OutcomeOf(err)
		if o.Class != c.class || o.Reason != c.reason || err.Error() != c.text || *o.Evidence.ExitCode != c.result.ExitCode {
			t.Errorf("%s: %s %s %q exit %d", c.name, o.Class, o.Reason, err, *o.Evidence.ExitCode)
		}
		c.result.Stderr.Data = []byte("first\nlast \xff line \n \n\n")
		want := "last \uFFFD line"
		if !strings.HasPrefix(c.text, "exit") {
			want = c.text + ": " + want
		}
		var exit *ExitError
		if err := c.result.Err([]int{3, 131}); err.Error() != want || !errors.As(err, &exit) {
			t.Errorf("%s: text %q, want %q", c.name, err, want)
		}
	}
	if err := (Result{Stderr: Tail{Data: []byte("noise")}}).Err([]int{0}); err != nil {
		t.Errorf("exit 0: %v", err)
	}
}

func TestExitErrorEvidence(t *testing.T) {
	long := strings.Repeat("é", 100<<10)
	r := Result{ExitCode: 1, Stderr: Tail{Data: []byte(long), Dropped: 5}, Stdout: Tail{Data: []byte("out")}}
	err := r.Err(nil)
	if n := len(err.Error()); n > maxLine || !strings.HasSuffix(err.Error(), "é…") {
		t.Errorf("text of %d bytes ends in %q", n, err.Error()[n-6:])
	}
	kept := nixie.OutcomeOf(err).Evidence.Attachments
	if len(kept) != 2 || kept[0].Name != "stderr" || len(kept[0].Data) != nixie.MaxAttachment ||
		kept[0].Truncated != int64(5+len(long)-nixie.MaxAttachment) || kept[1].Name != "stdout" || string(kept[1].Data) != "out" {
		t.Errorf("attachments %d", len(kept))
	}
}

func TestParseVerdict(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Verdict
		fail string
	}{
		{in: `{"outcome":"complete"}`, want: Verdict{Outcome: nixie.Complete}},
		{in: ` { "outcome" : "retry", "reason":"throttled","retry_after":"30s","steps":["a","b","a"],` +
			`"class":"transient","message":"slow down" } ` + "\n",
			want: Verdict{Outcome: nixie.Retry, Reason: nixie.ReasonThrottled, RetryAfter: 30 * time.Second, Timed: true,
				Steps: []string{"a", "b"}, Class: nixie.ClassTransient, Message: "slow down"}},
		{in: `{"outcome":"release","retry_after":1.5}`,
			want: Verdict{Outcome: nixie.Release, RetryAfter: 1500 * time.Millisecond, Timed: true}},
		{in: `{"outcome":"release","retry_after":"0s"}`, want: Verdict{Outcome: nixie.Release, Timed: true}},
		{in: `{"outcome":"bury","reason":"the customer left"}`, want: Verdict{Outcome: nixie.Bury, Text: "the customer left"}},
		{in: ``, fail: "it ends too early"},
		{in: `{"outcome":"retry"`, fail: "not valid JSON"},
		{in: `[]`, fail: "not a JSON object"},
		{in: `{}`, fail: "field outcome is missing"},
		{in: `{"outcome":"done"}`, fail: `field outcome is "done"`},
		{in: `{"outcome":null}`, fail: "field outcome is not a string"},
		{in: `{"Outcome":"retry"}`, fail: `field "Outcome" is unknown`},
		{in: `{"outcome":"retry","x":1}`, fail: `field "x" is unknown`},
		{in: `{"outcome":"retry","outcome":"bury"}`, fail: `field "outcome" occurs twice`},
		{in: `{"outcome":"retry","\u006futcome":"bury"}`, fail: `field "outcome" occurs twice`},
		{in: `{"outcome":"retry"} {}`, fail: "more after"},
		{in: `{"outcome":"retry","class":"bad"}`, fail: "field class"},
		{in: `{"outcome":"retry","reason":7}`, fail: "field reason is not a string"},
		{in: `{"outcome":"retry","message":{}}`, fail: "field message is not a string"},
		{in: `{"outcome":"bury","stack_trace":"at f\n","error_context":["a","b"]}`,
			want: Verdict{Outcome: nixie.Bury, Stack: "at f\n", Context: []string{"a", "b"}}},
		{in: `{"outcome":"bury","stack_trace":["a"]}`, fail: "field stack_trace is not a string"},
		{in: `{"outcome":"bury","error_context":"a"}`, fail: "field error_context is not an array"},
		{in: `{"outcome":"bury","error_context":["` + strings.Repeat(`a","`, 32) + `"]}`,
			fail: "field error_context has more than 32 lines, the limit"},
		{in: `{"outcome":"retry","steps":"a"}`, fail: "field steps is not an array"},
		{in: `{"outcome":"retry","steps":[1]}`, fail: "field steps is not a string"},
		{in: `{"outcome":"retry","steps":[""]}`, fail: "empty name"},
		{in: `{"outcome":"retry","steps":["a\u0000"]}`, fail: "control character"},
		{in: `{"outcome":"retry","steps":["` + strings.Repeat("x", 256) + `"]}`, fail: "256 bytes"},
		{in: `{"outcome":"retry","retry_after":"soon"}`, fail: `retry_after is "soon": give a duration like 30s`},
		{in: `{"outcome":"retry","retry_after":""}`, fail: `retry_after is ""`},
		{in: `{"outcome":"retry","retry_after":true}`, fail: "retry_after is neither"},
		{in: `{"outcome":"bury","retry_after":1}`, fail: "goes with outcome retry or release"},
		{in: "{\"outcome\":\"retry\",\"reason\":\"\xff\"}", fail: "UTF-8"},
		{in: `{"outcome":"retry","reason":"` + strings.Repeat("x", MaxVerdict) + `"}`, fail: "65536 bytes"},
		{in: strings.Repeat("[", MaxVerdict), fail: "not a JSON object"},
	} {
		got, err := ParseVerdict([]byte(c.in), noon)
		switch {
		case c.fail == "" && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%.60s: got %+v, %v", c.in, got, err)
		case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
			t.Errorf("%.60s: got %v, want %q", c.in, err, c.fail)
		}
	}
}

func TestJudge(t *testing.T) {
	failed := Result{ExitCode: 65, Stderr: Tail{Data: []byte("line")}}
	for _, c := range []struct{ verdict, want string }{
		{`{"outcome":"complete"}`, "nil"},
		{`{"outcome":"retry","reason":"throttled","retry_after":30}`, "retry  throttled 30s line"},
		{`{"outcome":"bury","reason":"it is sold","class":"permanent"}`, "bury permanent command-failed 0s it is sold"},
		{`{"outcome":"hold","reason":"it is sold","message":"ask Ann","class":"unknown"}`, "hold unknown command-failed 0s ask Ann"},
		{`{"outcome":"discard","reason":"policy"}`, "discard  policy 0s line"},
	} {
		v, err := ParseVerdict([]byte(c.verdict), noon)
		if err != nil {
			t.Fatal(err)
		}
		got := "nil"
		if err := failed.Judge(&v, nil); err != nil {
			o := nixie.OutcomeOf(err)
			got = fmt.Sprintf("%s %s %s %s %s", o.Verb, o.Class, o.Reason, o.After, err)
			if *o.Evidence.ExitCode != 65 || len(o.Evidence.Attachments) != 1 {
				t.Errorf("%s: evidence %+v", c.verdict, o.Evidence)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.verdict, got, c.want)
		}
	}
	if o := nixie.OutcomeOf(failed.Judge(nil, nil)); o.Verb != "" || o.Reason != nixie.ReasonValidation {
		t.Errorf("no verdict: %+v", o)
	}
	late := Result{TimedOut: true}
	if o := nixie.OutcomeOf(late.Judge(&Verdict{Outcome: nixie.Complete}, nil)); o.Reason != nixie.ReasonTimeout {
		t.Errorf("verdict of a command that timed out: %+v", o)
	}
}

// A verdict that cannot be read is a fault of the item, unless the exit says that time may heal it:
// then it is a note.
func TestJudgeBroken(t *testing.T) {
	_, broken := ParseVerdict(nil, noon)
	const note = "[verdict of the command: it is not valid JSON: it ends too early]"
	for _, c := range []struct {
		result Result
		want   string
	}{
		{Result{}, " validation 0 []"},
		{Result{ExitCode: 4}, " validation 4 []"},
		{Result{ExitCode: 65}, " validation 65 []"},
		{Result{ExitCode: 75}, "transient handler 75 " + note},
		{Result{ExitCode: 69}, "transient dependency 69 " + note},
		{Result{ExitCode: 137, Signal: syscall.SIGKILL}, "transient resource 137 " + note},
		{Result{ExitCode: 3}, " validation 3 []"},
	} {
		o := nixie.OutcomeOf(c.result.JudgeBroken(broken, []int{3}))
		if got := fmt.Sprint(o.Class, " ", o.Reason, " ", *o.Evidence.ExitCode, " ", o.Evidence.Context); got != c.want {
			t.Errorf("%+v: %s, want %s", c.result, got, c.want)
		}
		var verdict *VerdictError
		if errors.As(o.Err, &verdict) != (o.Class == "") {
			t.Errorf("%+v: %v", c.result, o.Err)
		}
	}
	if o := nixie.OutcomeOf(Result{TimedOut: true}.JudgeBroken(broken, nil)); o.Reason != nixie.ReasonTimeout {
		t.Errorf("timed out: %+v", o)
	}
}

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// What was past when the verdict was read is now, and what is too far is the longest delay.
func TestRetryAfter(t *testing.T) {
	longest := nixie.MaxDelay
	for value, want := range map[string]time.Duration{
		`0`: 0, `-0`: 0, `-5`: 0, `-1e400`: 0, `1e-400`: 0, `0.3`: 300 * time.Millisecond,
		`1.10`:             1100 * time.Millisecond,
		`9007199254740993`: longest, strings.Repeat("12", 5_000): longest,
		`1.5`: 1500 * time.Millisecond, `1e300`: longest, `1e400`: longest,
		`"30s"`: 30 * time.Second, `"2d"`: 48 * time.Hour, `"-5s"`: 0, `"900000h"`: longest,
		`"120"`: 2 * time.Minute, `"-7"`: 0, `"99999999999999999999"`: longest,
		`"Thu, 26 Nov 2026 12:00:30 GMT"`: 30 * time.Second, `"Thursday, 26-Nov-26 12:01:00 GMT"`: time.Minute,
		`"Thu Nov 26 12:02:00 2026"`: 2 * time.Minute, `"2026-11-26T13:00:03+01:00"`: 3 * time.Second,
		`"Thu, 26 Nov 2026 11:00:00 GMT"`: 0, `"9999-01-01T00:00:00Z"`: longest, `"0001-01-01T00:00:00Z"`: 0,
	} {
		v, err := ParseVerdict([]byte(`{"outcome":"retry","retry_after":`+value+`}`), noon)
		if err != nil || v.RetryAfter != want {
			t.Errorf("%s: %s, want %s, %v", value, v.RetryAfter, want, err)
		}
	}
}

func TestReadVerdict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "verdict")
	if v, err := ReadVerdict(path, noon); v != nil || err != nil {
		t.Errorf("no file: %v, %v", v, err)
	}
	spec := shell(`echo '{"outcome":"hold"}' > "$NIXIE_VERDICT"`)
	spec.Env = append(spec.Env, "NIXIE_VERDICT="+path)
	mustRun(t, spec)
	if v, err := ReadVerdict(path, noon); err != nil || v.Outcome != nixie.Hold {
		t.Errorf("got %v, %v", v, err)
	}
	for name, script := range map[string]string{
		"empty": `: > "$1"`, "folder": `mkdir "$1"`, "fifo": `mkfifo "$1"`, "link": `ln -s /etc/passwd "$1"`,
		"link to a device": `ln -s /dev/zero "$1"`, "flood": `head -c 10000000 /dev/zero > "$1"`,
	} {
		mustRun(t, shell(script, path))
		if v, err := ReadVerdict(path, noon); v != nil || err == nil {
			t.Errorf("%s: %v, %v", name, v, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s stays: %v", name, err)
		}
	}
}

func FuzzParseVerdict(f *testing.F) {
	f.Add([]byte(`{"outcome":"retry","reason":"throttled","retry_after":"30s","steps":["a"],"class":"unknown","message":"m"}`))
	f.Add([]byte(`{"outcome":"release","retry_after":1e9}`))
	f.Add([]byte(`{"outcome":"bury"} x`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseVerdict(data, noon)
		if err != nil {
			if code := nixie.CodeOf(err); code != nixie.CodeInvalid && code != nixie.CodeLimit {
				t.Errorf("error %v has code %s", err, code)
			}
			return
		}
		if v.RetryAfter < 0 || v.RetryAfter > nixie.MaxDelay || len(v.Steps) > nixie.MaxSteps {
			t.Errorf("accepted %+v", v)
		}
		if err := (Result{}).Judge(&v, nil); (err == nil) != (v.Outcome == nixie.Complete) {
			t.Errorf("%+v became %v", v, err)
		}
	})
}

func FuzzRing(f *testing.F) {
	f.Add([]byte("hello world"), 4, 3)
	f.Fuzz(func(t *testing.T, data []byte, limit, piece int) {
		limit, piece = max(0, min(limit, 64)), max(1, min(piece, 100))
		r := ring{limit: limit}
		for rest := data; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			r.write(rest[:min(piece, len(rest))])
		}
		tail := r.tail()
		want := data[max(0, len(data)-limit):]
		if string(tail.Data) != string(want) || tail.Dropped != int64(len(data)-len(want)) {
			t.Errorf("got %q and %d, want %q", tail.Data, tail.Dropped, want)
		}
	})
}
