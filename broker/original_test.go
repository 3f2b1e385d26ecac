package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
)

// dlq is a dead letter of a share group as its broker writes it.
func dlq(more ...RecordHeader) *Record {
	headers := []RecordHeader{
		{"__dlq.errors.topic", []byte("orders")}, {"__dlq.errors.partition", []byte("1")}, {"__dlq.errors.offset", []byte("7")},
		{"__dlq.errors.group", []byte("g")}, {"__dlq.errors.delivery.count", []byte("1")},
		{"__dlq.errors.message", []byte("Offset rejected by client.")},
	}
	return &Record{Channel: "dlq.orders", Server: "cluster", ID: [16]byte{1}, Timestamp: time.UnixMilli(1_700_000_000_000),
		Headers: append(headers, more...)}
}

// A record that points to another one stands for that. Without it, the letter is in review, and an
// absent body never becomes a null one.
func TestPointers(t *testing.T) {
	original := func(change func(*Original)) *Original {
		o := &Original{Key: []byte("k"), Value: []byte("body"), Timestamp: time.UnixMilli(1_699_999_999_000),
			Headers: []RecordHeader{{"trace", []byte("t")}, {HeaderRedriveCount, []byte("2")}, {HeaderTopic, []byte("elsewhere")}}}
		if change != nil {
			change(o)
		}
		return o
	}
	whole, copied := `"k" "body" [trace] open`, func(r *Record) { r.Key, r.Value = []byte("k"), []byte("body") }
	for name, tc := range map[string]struct {
		change func(*Record)
		o      *Original
		want   string // key, body, headers, status, where the body lies, and a part of the note
	}{
		"fetched":                   {nil, original(nil), whole},
		"a tombstone":               {nil, original(func(o *Original) { o.Value = nil }), `"k" nil [trace] open`},
		"a tombstone without a key": {nil, original(func(o *Original) { o.Key, o.Value = nil, nil }), `nil nil [trace] open`},
		"gone":                      {nil, &Original{Gone: "it is not there"}, `nil nil [] review orders/1/7 it is not there`},
		"not looked for":            {nil, nil, `nil nil [] review orders/1/7 was not looked for`},
		"younger than its letter": {nil, original(func(o *Original) { o.Timestamp = time.UnixMilli(1_700_000_000_001) }),
			`nil nil [] review orders/1/7 is younger than the letter`},
		"as old as its letter": {nil, original(func(o *Original) { o.Timestamp = time.UnixMilli(1_700_000_000_000) }),
			whole},
		"copied": {copied, original(nil), whole},
		"copied and gone": {copied, &Original{Gone: "it was deleted"},
			`"k" "body" [] review headers: those of its sender lay at orders/1/7, and it was deleted`},
		"copied, and another lies there": {copied, original(func(o *Original) { o.Value = []byte("other") }),
			`"k" "body" [] review headers: those of its sender lay at orders/1/7, and the record there is another one`},
		"copied with headers": {func(r *Record) { copied(r); r.Headers = append(r.Headers, RecordHeader{"own", nil}) },
			&Original{Gone: "it was deleted"}, `"k" "body" [own] open`},
		"a copied tombstone": {func(r *Record) { r.Key = []byte("k") }, original(func(o *Original) { o.Value = nil }),
			`"k" nil [trace] open`},
		"without an offset": {func(r *Record) { r.Headers[2].Value = []byte("x") }, nil, `nil nil [] review orders/1/-1`},
	} {
		t.Run(name, func(t *testing.T) {
			r := dlq()
			if tc.change != nil {
				tc.change(r)
			}
			r.Original = tc.o
			l, back := Adopted("kafka", r, ""), FromRecord(r)
			if err := check.Letter(&l); err != nil {
				t.Fatal(err)
			}
			for _, again := range []Returning{back, FromLetter(&l)} {
				got := fmt.Sprintf("%s %s [%s] %s", shownKey(again.Key), shownKey(again.Value), names(again.Headers), l.Status)
				if at := l.Message.Origin.BodyAt; at != "" {
					got += " " + at
					got = strings.Replace(got, "\"\"", "nil", 1) // the body that a store keeps for none
				}
				if head, note, _ := strings.Cut(tc.want, " review "); !strings.HasPrefix(got, head) ||
					!strings.Contains(l.Note, note[strings.LastIndex(note, "7 ")+1:]) {
					t.Errorf("got %s, note %q, want %s", got, l.Note, tc.want)
				}
			}
			lost := l.Message.Origin.BodyAt != ""
			if lost != strings.Contains(tc.want, "review orders/") {
				t.Errorf("its body lies at %q, want %s", l.Message.Origin.BodyAt, tc.want)
			}
			if (back.Lacks != "") != (l.Status == nixie.StatusReview) || (FromLetter(&l).Lacks != "") != lost || lost == l.Redrivable {
				t.Errorf("the record lacks %q, the letter %q, which is redrivable: %v", back.Lacks, FromLetter(&l).Lacks, l.Redrivable)
			}
			if back.Letter != l.ID {
				t.Errorf("letter %s and %s", back.Letter, l.ID)
			}
			if got, want := l.Message.Redrives, map[bool]int{true: 2, false: 0}[strings.Contains(tc.want, "trace")]; got != want {
				t.Errorf("%d redrives, want %d", got, want)
			}
		})
	}
}

func shownKey(b []byte) string {
	if b == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", b)
}

func names(headers []RecordHeader) string {
	var all []string
	for _, h := range headers {
		all = append(all, h.Name)
	}
	return strings.Join(all, " ")
}

// A letter that was adopted when pointers were taken for tombstones is not sent either.
func TestOldPointers(t *testing.T) {
	old := nixie.Letter{
		Message: nixie.Message{
			Queue: "orders", Headers: []nixie.Header{{Name: HeaderTombstone, Value: "true"}},
			Origin: &nixie.Origin{System: "kafka", Channel: "orders", Partition: 1, Offset: 7, MessageID: "dlq.orders/0/0"},
		},
		Cause: nixie.CauseAdopted, Rule: "share", Status: nixie.StatusOpen, Redrivable: true,
	}
	if back := FromLetter(&old); !strings.Contains(back.Lacks, "it lay at orders/1/7") || old.Message.Origin.BodyAt != "" {
		t.Errorf("%+v", back)
	}
	marked := old
	if !MarkElsewhere(&marked) || marked.Message.Origin.BodyAt != "orders/1/7" || marked.Status != nixie.StatusReview ||
		len(marked.Message.Headers) > 0 || old.Message.Origin.BodyAt != "" {
		t.Errorf("%+v of %+v", marked, marked.Message.Origin)
	}
	for name, change := range map[string]func(*nixie.Letter, *nixie.Origin){
		"a tombstone with a key":       func(_ *nixie.Letter, o *nixie.Origin) { o.Key = []byte("k") },
		"a tombstone that was fetched": func(_ *nixie.Letter, o *nixie.Origin) { o.Server = "cluster" },
		"another system":               func(l *nixie.Letter, _ *nixie.Origin) { l.Rule = "connect" },
		"an edited one":                func(l *nixie.Letter, _ *nixie.Origin) { l.Original = &nixie.Original{} },
	} {
		l, o := old, *old.Message.Origin
		l.Message.Origin = &o
		if change(&l, &o); MarkElsewhere(&l) || FromLetter(&l).Lacks != "" {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
