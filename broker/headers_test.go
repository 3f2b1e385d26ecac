package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// S17: the last header of a name counts in any case, and a value that is no valid number counts as
// none.
func TestS17_HeadersAreRead(t *testing.T) {
	for _, c := range []struct {
		headers []RecordHeader
		want    int
	}{
		{nil, 0},
		{[]RecordHeader{{HeaderRedriveCount, []byte("1")}, {"X-Redrive-Count", []byte("2")}}, 2},
		{[]RecordHeader{{HeaderRedriveCount, []byte("-3")}}, 0},
		{[]RecordHeader{{HeaderRedriveCount, []byte("many")}}, 0},
		{[]RecordHeader{{HeaderRedriveCount, nil}}, 0},
		{[]RecordHeader{{HeaderRedriveCount, []byte("99999999999")}}, maxCount},
		{[]RecordHeader{{HeaderRedriveCount, []byte("99999999999999999999")}}, 0},
	} {
		if got := headerCount(c.headers, HeaderRedriveCount); got != c.want {
			t.Errorf("%q: %d, want %d", c.headers, got, c.want)
		}
	}
}

// The number of headers does not grow when a record dies often.
func TestHeadersStayBounded(t *testing.T) {
	i := &item{delivery: &nixie.Delivery{}, record: &Record{Channel: "in",
		Headers: []RecordHeader{{"theirs", []byte("1")}, {"X-ATTEMPTS", []byte("7")}}}}
	s := &Source{c: Config{Letters: DefaultLetters}}
	before := 0
	for generation := range 100 {
		p := s.letterRecord(&openSettlement{item: i, st: &nixie.Settlement{
			Failure: &nixie.Failure{Text: "boom", Stack: "at line", FailedAt: time.Unix(1, 0)},
			Burial:  &nixie.Burial{Cause: nixie.CausePermanent},
		}})
		if generation > 0 && len(p.Headers) != before {
			t.Fatalf("%d headers after %d deaths, %d before", len(p.Headers), generation+1, before)
		}
		if p.Headers[0].Name != "theirs" {
			t.Fatalf("headers %q", p.Headers)
		}
		before = len(p.Headers)
		i.record.Headers = p.Headers
	}
}

// Headers that are not text pass unchanged, and none becomes another one.
func TestBinaryHeadersPassUnchanged(t *testing.T) {
	got := inbound([]RecordHeader{
		{"plain", []byte("text")}, {"bytes", []byte{0xff}}, {"nil", nil}, {"empty", []byte{}}, {"", []byte("no name")},
		{inBase64 + "x", []byte("a name like ours")}, {"X-Failure-Reason", []byte("ours")},
	})
	seen := map[nixie.Header]bool{}
	for _, h := range got {
		m := nixie.Message{Queue: "q", Headers: []nixie.Header{h}}
		if err := m.Check(); err != nil || seen[h] {
			t.Errorf("%q: %v", h, err)
		}
		seen[h] = true
	}
	if len(got) != 6 || got[0] != (nixie.Header{Name: "plain", Value: "text"}) || got[3] != (nixie.Header{Name: "empty"}) {
		t.Errorf("%q", got)
	}
}

// The type of a message that follows a settlement is its type where it is received.
func TestTypeIsKept(t *testing.T) {
	for value, want := range map[string]string{"done": "done", "": "", "\x00": "", strings.Repeat("x", 1<<10): ""} {
		i := item{record: &Record{Channel: "c", Headers: []RecordHeader{{HeaderType, []byte(value)}}}}
		i.fill(&newDelivery{}, &Features{}, "", time.Now())
		if got := i.delivery.Type; got != want {
			t.Errorf("%q: type is %q, want %q", value, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "a long text of which a part goes": "a lo" + cutMark,
		"äöüäöüäöüäöüäöüäöüäöü": "äö" + cutMark} {
		if got := cut(text, 12); got != want || len(got) > 12 {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzInbound(f *testing.F) {
	f.Add("name", []byte("value"))
	f.Add("", []byte{0xff})
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		for _, h := range inbound([]RecordHeader{{name, value}}) {
			m := nixie.Message{Queue: "q", Headers: []nixie.Header{h}}
			if err := m.Check(); err != nil && nixie.CodeOf(err) != nixie.CodeLimit {
				t.Errorf("%q: %v", h, err)
			}
		}
		_ = headerCount([]RecordHeader{{HeaderAttempts, value}}, HeaderAttempts)
		if at := headerTime([]RecordHeader{{HeaderFirstFailureAt, value}}, HeaderFirstFailureAt); !at.IsZero() &&
			(at.Year() < 1970 || at.Unix() > lastTime) {
			t.Errorf("%s", at)
		}
	})
}
