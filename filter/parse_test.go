package filter_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

func parseFilter(t testing.TB, text string) nixie.Filter {
	t.Helper()
	f, err := filter.Parse(text, now)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return f
}

func TestParse(t *testing.T) {
	const a, b = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
	idA, _ := nixie.ParseID(a)
	idB, _ := nixie.ParseID(b)
	date := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	const hour = time.Hour
	for _, c := range []struct {
		text, canonical string
		want            nixie.Filter
	}{
		{"", "", nixie.Filter{}},
		{" \t\r\n", "", nixie.Filter{}},
		{"no  route", `text:"no route"`, nixie.Filter{Text: "no route"}},
		{`"no  route" to queue:a`, `queue:a text:"no  route to"`, nixie.Filter{Text: "no  route to", Queues: []string{"a"}}},
		{"a=b", "text:a=b", nixie.Filter{Text: "a=b"}},
		{"queue:a refused -host -reason:timeout,auth", "queue:a text:refused -text:host -reason:timeout,auth", nixie.Filter{
			Queues: []string{"a"}, Text: "refused", Not: []nixie.Filter{{Text: "host"}, {Reasons: []nixie.Reason{"timeout", "auth"}}}}},
		{`-"no route" -died:<2026-01-02`, `-text:"no route" -died:<2026-01-02T00:00:00Z`, nixie.Filter{
			Not: []nixie.Filter{{Text: "no route"}, {Died: nixie.Times{Before: date(2)}}}}},
		{`header:tenant=acme,"b=c d"`, `header:tenant=acme header:"b=c d"`, nixie.Filter{
			Headers: []nixie.Header{{Name: "tenant", Value: "acme"}, {Name: "b", Value: "c d"}}}},
		{"id:302099A8057,b302-099a8057," + a, "id:" + a + ",302099a8057,b302099a8057", nixie.Filter{
			IDs: []nixie.ID{idA}, Endings: []string{"302099a8057", "b302099a8057"}}},
		{"queue:orders", "queue:orders", nixie.Filter{Queues: []string{"orders"}}},
		{"queue:a:b/c queue:d", "queue:a:b/c,d", nixie.Filter{Queues: []string{"a:b/c", "d"}}},
		{"reason:timeout,dependency", "reason:timeout,dependency", nixie.Filter{Reasons: []nixie.Reason{"timeout", "dependency"}}},
		{"reason:timeout reason:dependency", "reason:timeout,dependency", nixie.Filter{Reasons: []nixie.Reason{"timeout", "dependency"}}},
		{`text:"a b"`, `text:"a b"`, nixie.Filter{Text: "a b"}},
		{`text:"say \"hi\" \\ bye"`, `text:"say \"hi\" \\ bye"`, nixie.Filter{Text: `say "hi" \ bye`}},
		{`text:a\b`, `text:"a\\b"`, nixie.Filter{Text: `a\b`}},
		{`key:"a,b",c,"",">1"`, `key:"a,b",c,"",>1`, nixie.Filter{Keys: []string{"a,b", "c", "", ">1"}}},
		{`key:"é☃"`, `key:é☃`, nixie.Filter{Keys: []string{"é☃"}}},
		{"id:" + a + "," + strings.ToUpper(b), "id:" + a + "," + b, nixie.Filter{IDs: []nixie.ID{idA, idB}}},
		{"operation:" + a, "operation:" + a, nixie.Filter{Operation: idA}},
		{"type:t stream:s status:open state:dead class:unknown cause:poison fingerprint:v1:ab,v1:c signature:sig",
			"type:t stream:s status:open state:dead class:unknown cause:poison fingerprint:v1:ab,v1:c signature:sig",
			nixie.Filter{Types: []string{"t"}, Streams: []string{"s"}, Statuses: []nixie.Status{"open"}, States: []nixie.State{"dead"},
				Classes: []nixie.Class{"unknown"}, Causes: []nixie.Cause{"poison"}, Signature: "sig",
				Fingerprints: []string{"v1:ab", "v1:c"}}},
		{"error-type:TimeoutError,\"a b\" -error-type:net.", "error-type:TimeoutError,\"a b\" -error-type:net.", nixie.Filter{
			ErrorTypes: []string{"TimeoutError", "a b"}, Not: []nixie.Filter{{ErrorTypes: []string{"net."}}}}},
		{"family:8e94f7d499e2,b", "fingerprint:family:8e94f7d499e2,family:b",
			nixie.Filter{Fingerprints: []string{"family:8e94f7d499e2", "family:b"}}},
		{"redrivable:true needs_review:no", "redrivable:yes needs_review:no", nixie.Filter{Redrivable: ptr(true), NeedsReview: ptr(false)}},
		{"redrives:>0", "redrives:>=1", nixie.Filter{Redrives: nixie.Range{Min: ptr[int64](1)}}},
		{"attempts:>=3 attempts:<5", "attempts:>=3 attempts:<=4",
			nixie.Filter{Attempts: nixie.Range{Min: ptr[int64](3), Max: ptr[int64](4)}}},
		{"deliveries:0", "deliveries:0", nixie.Filter{Deliveries: nixie.Range{Min: ptr[int64](0), Max: ptr[int64](0)}}},
		{"crashes:>0", "crashes:>=1", nixie.Filter{Crashes: nixie.Range{Min: ptr[int64](1)}}},
		{"due:<now+2h", "due:<2026-05-04T14:00:00Z", nixie.Filter{Due: nixie.Times{Before: now.Add(2 * hour)}}},
		{"deliveries:<=0", "deliveries:<=0", nixie.Filter{Deliveries: nixie.Range{Max: ptr[int64](0)}}},
		{"age:>1h", "age:>=1h0m0.000000001s", nixie.Filter{Age: nixie.Durations{Min: hour + 1}}},
		{"age:>0s age:<=2d", "age:>=1ns age:<=48h0m0s", nixie.Filter{Age: nixie.Durations{Min: 1, Max: 48 * hour}}},
		{"age:>=1w2d3h4m5.5s", "age:>=219h4m5.5s",
			nixie.Filter{Age: nixie.Durations{Min: 219*hour + 4*time.Minute + 5500*time.Millisecond}}},
		{"age:<1h", "age:<=59m59.999999999s", nixie.Filter{Age: nixie.Durations{Max: hour - 1}}},
		{"first_failed:<2026-01-02", "first_failed:<2026-01-02T00:00:00Z", nixie.Filter{FirstFailed: nixie.Times{Before: date(2)}}},
		{"first_failed:<=2026-01-02", "first_failed:<2026-01-03T00:00:00Z", nixie.Filter{FirstFailed: nixie.Times{Before: date(3)}}},
		{"died:>2026-01-02", "died:>=2026-01-03T00:00:00Z", nixie.Filter{Died: nixie.Times{After: date(3)}}},
		{"died:2026-01-02", "died:>=2026-01-02T00:00:00Z died:<2026-01-03T00:00:00Z",
			nixie.Filter{Died: nixie.Times{After: date(2), Before: date(3)}}},
		{"last_failed:>=2026-01-02T01:00:00+01:00", "last_failed:>=2026-01-02T00:00:00Z",
			nixie.Filter{LastFailed: nixie.Times{After: date(2)}}},
		{"last_failed:>2026-01-02T00:00:00Z", "last_failed:>=2026-01-02T00:00:00.000000001Z",
			nixie.Filter{LastFailed: nixie.Times{After: date(2).Add(1)}}},
		{"last_failed:<=2026-01-02T00:00:00Z", "last_failed:<2026-01-02T00:00:00.000000001Z",
			nixie.Filter{LastFailed: nixie.Times{Before: date(2).Add(1)}}},
		{"died:>=now-2h died:<now", "died:>=2026-05-04T10:00:00Z died:<2026-05-04T12:00:00Z",
			nixie.Filter{Died: nixie.Times{After: now.Add(-2 * hour), Before: now}}},
	} {
		parsesTo(t, c.text, c.want, c.canonical)
	}
}

// parsesTo expects the filter of a text, and how it is written.
func parsesTo(t *testing.T, text string, want nixie.Filter, canonical string) {
	t.Helper()
	got := parseFilter(t, text)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Parse(%q)\n got %+v\nwant %+v", text, got, want)
	}
	if s := filter.Text(got); s != canonical {
		t.Errorf("Parse(%q).String() = %q, want %q", text, s, canonical)
	}
	if strings.TrimSpace(text) == "" != got.IsZero() {
		t.Errorf("Parse(%q).IsZero() = %v", text, got.IsZero())
	}
}

// The end of an operation's ID becomes an ID that no operation has, and is written as it was.
func TestParseOperation(t *testing.T) {
	const a = "01890a5d-ac96-774b-bcce-b302099a8057"
	idA, _ := nixie.ParseID(a)
	for text, want := range map[string]nixie.Filter{
		"-operation:" + a:    {Not: []nixie.Filter{{Operation: idA}}},
		"operation:00e3f402": {Operation: nixie.ID{11: 1, 13: 0xe3, 14: 0xf4, 15: 2}},
		"operation:b302099a805712345": {Operation: nixie.ID{7: 0x1b, 8: 0x30, 9: 0x20, 10: 0x99, 11: 0xa8, 12: 0x05, 13: 0x71, 14: 0x23,
			15: 0x45}},
	} {
		for _, typed := range []string{text, strings.ToUpper(text[len(text)-8:])} {
			typed = text[:len(text)-8] + typed[len(typed)-8:]
			if got := parseFilter(t, typed); !reflect.DeepEqual(got, want) || filter.Text(got) != text {
				t.Errorf("%s is\n%+v, written %s, want\n%+v", typed, got, filter.Text(got), want)
			}
		}
	}
}

// fault is a text that Parse refuses.
type fault struct {
	text   string
	column int
	says   string
}

func TestParseSyntaxErrors(t *testing.T) {
	checkFaults(t, []fault{
		{"reason", 1, `"reason" has no colon: write reason:…, or text:reason to search for it`},
		{"queue:a reason=timeout", 9, `"reason=timeout" has no colon: write reason:timeout, or text:reason=timeout`},
		{"attempts>3", 1, `write attempts:>3, or`},
		{"a queue:b c", 11, "text is given twice"},
		{"http://x", 1, `unknown key "http"`},
		{`http://x`, 1, `quote what has a colon to search for it`},
		{`"`, 1, "not closed"},
		{`""`, 1, "text is empty"},
		{"\xff", 1, "the word is not valid UTF-8"},
		{"-family:8e94f7d499e2", 2, "a family cannot be left out: name the fingerprints of its groups"},
		{"-", 1, "- has no term"},
		{"queue:a - b", 9, "- has no term"},
		{"--reason:timeout", 2, "did you mean reason?"},
		{"-reason:timeot", 9, "did you mean timeout?"},
		{"-died:2026-01-31", 7, "-died needs a comparison: write -died:<2026-01-31 or -died:>2026-01-31"},
		{"header:a", 8, `header is "a": write header:NAME=VALUE`},
		{"header:=b", 8, `header is "=b": write header:NAME=VALUE`},
		{"id:12345", 4, "is not an ID"},
		{"id:12345g", 4, "is not an ID"},
		{":x", 1, `unknown key ""`},
		{"reasn:timeout", 1, `unknown key "reasn" (did you mean reason?); quote`},
		{"Queue:a", 1, `did you mean queue?`},
		{"nonsense:a", 1, `unknown key "nonsense": the keys are`},
		{"key:é reason:timeot", 14, `"timeot" is no reason (did you mean timeout?): one of unknown, transport-unavailable,`},
		{"status:opened", 8, `(did you mean open?): one of open, review, redriving, quarantined, resolved, discarded`},
		{"state:zzzz", 7, `"zzzz" is no state: one of queued,`},
		{"class:x", 7, "one of transient, permanent, unknown"},
		{"cause:x", 7, "one of exhausted, permanent, poison, expired, max-age, operator, adopted"},
		{"reason:timeout,", 16, "reason has no value here"},
		{"reason:,timeout", 8, "reason has no value here"},
		{"reason:", 8, "reason has no value here"},
		{"queue: a", 7, "queue has no value here"},
		{`text:"abc`, 6, "not closed"},
		{`text:"a\n"`, 8, `a backslash in quotes is followed by " or \ only`},
		{`text:"a\`, 8, "a backslash in quotes"},
		{`text:a"b"`, 7, "a quote in the middle of a value"},
		{`text:"a"b`, 9, "text right after a closing quote"},
		{`text:""`, 6, "text is empty, which would hold for everything"},
		{`error-type:a,""`, 14, "error-type is empty, which would hold for everything"},
		{`signature:""`, 11, "signature is empty"},
		{`text:a,b`, 8, "text takes one value: quote it if the comma belongs to it"},
		{`text:a text:b`, 8, "text is given twice"},
		{`redrivable:yes,no`, 16, "redrivable takes one value"},
		{`redrivable:yes redrivable:no`, 16, "redrivable is given twice"},
		{`redrivable:maybe`, 12, `"maybe" is neither yes nor no: write redrivable:yes or redrivable:no`},
	})
}

func TestParseValueErrors(t *testing.T) {
	checkFaults(t, []fault{
		{"age:1h", 5, "age needs a comparison: write age:>1h for older"},
		{"age:>1x", 6, `"1x" is no duration: write a number and a unit of ns us ms s m h d w`},
		{"age:>5", 6, "is no duration"},
		{"age:>", 6, "is no duration"},
		{"age:>-1h", 6, "is no duration"},
		{"age:>1.2.3h", 6, "is no duration"},
		{"age:>h", 6, "is no duration"},
		{"age:>200000d", 6, "is too long"},
		{"age:>290y", 6, "is no duration"},
		{"age:>=0s", 7, "age:>=0 holds for everything"},
		{"age:>=0", 7, "age:>=0 holds for everything"},
		{"age:<=0s", 7, "nothing is that young"},
		{"age:<1ns", 6, "nothing is that young"},
		{"age:>1h age:>2h", 9, "age has a lower bound already"},
		{"age:<1h age:<=2h", 9, "age has an upper bound already"},
		{"age:>1h,<2h", 9, "age takes one value"},
		{"redrives:x", 10, `"x" is no whole number: write redrives:3 or redrives:>0`},
		{"redrives:>1.5", 11, "is no whole number"},
		{"redrives:>", 11, "is no whole number"},
		{"redrives:9223372036854775808", 10, "has too many digits: give a number of at most 9223372036854775807"},
		{"redrives:>9223372036854775807", 11, "no number is beyond"},
		{"redrives:3 redrives:4", 12, "redrives has a lower bound already"},
		{"redrives:<3 redrives:4", 13, "redrives has an upper bound already"},
		{"died:yesterday", 6, `"yesterday" is no moment: write 2026-01-31, 2026-01-31T10:00:00Z or now-2h`},
		{"died:>2026-13-01", 7, "is no moment"},
		{"died:>now*2h", 7, "is no moment"},
		{"due:>now+", 6, "is no moment"},
		{"died:>now-", 7, "is no moment"},
		{"died:>0001-01-01", 7, "is out of range: give a moment from 1970"},
		{"died:<2262-01-02", 7, "is out of range"},
		{"died:>2026-01-01 died:>2026-01-02", 18, "died has a lower bound already"},
		{"id:abc", 4, `"abc" is not an ID`},
		{"operation:00000000-0000-0000-0000-000000000000", 11, "the zero ID"},
		{"operation:00000", 11, `"00000" is not an ID: give the whole one, or its last 6 digits or more`},
		{"operation:01234567890123456789", 11, "operation has 20 digits: give the whole ID, or its last 6 to 19 digits"},
		{"-operation:00e3f402", 12, "-operation needs the whole ID"},
		{"id:00000000-0000-0000-0000-000000000000", 4, "the zero ID"},
		{"queue:a\xff", 7, "not valid UTF-8"},
		{"queue:\"a\xff\"", 7, "not valid UTF-8"},
		{strings.Repeat("queue:a ", filter.MaxTerms+1), 1601, "more than 200 terms, the limit"},
		{"text:" + strings.Repeat("é", filter.MaxText/2), 5 + filter.MaxText/2 - 3 + 1, "the text has 8197 bytes, the limit is 8192"},
	})
}

// checkFaults also holds that what cannot be read or says nothing never
// becomes a filter that matches everything.
func checkFaults(t *testing.T, faults []fault) {
	t.Helper()
	for _, c := range faults {
		f, err := filter.Parse(c.text, now)
		var fe *filter.Error
		var coded *nixie.Error
		if !errors.As(err, &fe) || !errors.As(err, &coded) || nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("Parse(%.80q) = %+v, %v; want a Error of code invalid", c.text, f, err)
			continue
		}
		if fe.Column != c.column || !strings.Contains(fe.Message, c.says) || fe.Text != c.text {
			t.Errorf("Parse(%.80q): column %d, %s\nwant column %d, %s", c.text, fe.Column, fe.Message, c.column, c.says)
		}
		if !f.IsZero() {
			t.Errorf("Parse(%.80q) gave a filter with its error: %v", c.text, f)
		}
	}
}

func TestErrorPoints(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"key:é reason:timeot", "\n  key:é reason:timeot\n               ^"},
		{"key:\x1b[31m\u202e\xff reason:x", "\n  key:\\x1b[31m\\u202e\\xff reason:x\n      ^"},
		{"key:\"\x1b[31m\u202e\" reason:x", "\n  key:\"\\x1b[31m\\u202e\" reason:x\n                              ^"},
		{"reason:", "\n  reason:\n         ^"},
		{strings.Repeat("queue:a ", 20) + "x:1", "…"},
	} {
		_, err := filter.Parse(c.text, now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got\n%v\nwant it to hold\n%s", c.text, err, c.want)
		}
	}
	long := strings.Repeat("queue:a ", 20) + "x:1 " + strings.Repeat("queue:a ", 20)
	_, err := filter.Parse(long, now)
	lines := strings.Split(err.Error(), "\n")
	if at := len([]rune(lines[2])) - 1; string([]rune(lines[1])[at]) != "x" || len([]rune(lines[1])) > 125 {
		t.Errorf("the caret of a long text is off:\n%v", err)
	}
}

func TestFilterIsZero(t *testing.T) {
	if !(nixie.Filter{Queues: []string{}}).IsZero() {
		t.Error("a filter with an empty list matches all but IsZero denies it")
	}
	typ := reflect.TypeFor[nixie.Filter]()
	for i := range typ.NumField() {
		var f nixie.Filter
		set(reflect.ValueOf(&f).Elem().Field(i))
		if f.IsZero() {
			t.Errorf("a filter with %s is not zero", typ.Field(i).Name)
		}
		if filter.Text(f) == "" {
			t.Errorf("%s is missing from the text of a filter", typ.Field(i).Name)
		}
	}
}

// set gives v some value that is not zero.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0))
	case reflect.Array:
		v.Index(0).SetUint(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(now))
			return
		}
		set(v.Field(0))
	default:
		panic("no value for " + v.Type().String())
	}
}

func drawFilter(t *rapid.T) nixie.Filter {
	id := rapid.Custom(func(t *rapid.T) nixie.ID {
		id := nixie.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		id[15] |= 1
		return id
	})
	moment := func(name string) time.Time {
		return time.Unix(0, rapid.Int64Range(0, time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()).Draw(t, name)).UTC()
	}
	times := func(name string) (b nixie.Times) {
		if rapid.Bool().Draw(t, name) {
			b.After = moment(name)
		}
		if rapid.Bool().Draw(t, name) {
			b.Before = moment(name)
		}
		return b
	}
	number := func(name string) nixie.Range {
		end := rapid.Ptr(rapid.Int64(), true)
		return nixie.Range{Min: end.Draw(t, name), Max: end.Draw(t, name)}
	}
	header := rapid.Custom(func(t *rapid.T) nixie.Header {
		return nixie.Header{Name: rapid.StringMatching(`[a-z ,"]{1,5}`).Draw(t, "name"), Value: rapid.String().Draw(t, "value")}
	})
	not := rapid.Custom(func(t *rapid.T) nixie.Filter {
		return rapid.SampledFrom([]nixie.Filter{
			{Text: "a b"}, {Reasons: []nixie.Reason{"auth", "timeout"}}, {Age: nixie.Durations{Max: 5}},
			{Headers: []nixie.Header{{Name: "a"}}},
			{Died: nixie.Times{After: time.Unix(9, 0).UTC()}}, {NeedsReview: new(bool)}, {Endings: []string{"0123abc"}},
		}).Draw(t, "not")
	})
	return nixie.Filter{
		IDs:          few(t, "ids", id),
		Endings:      few(t, "endings", rapid.StringMatching(`[0-9a-f]{6,31}`)),
		Headers:      few(t, "headers", header),
		Not:          few(t, "nots", not),
		Queues:       few(t, "queues", rapid.String()),
		Types:        few(t, "types", rapid.StringMatching(`[ ,"\\a:]{0,8}`)),
		Keys:         few(t, "keys", rapid.String()),
		Streams:      few(t, "streams", rapid.String()),
		Statuses:     few(t, "statuses", rapid.SampledFrom(nixie.Statuses())),
		States:       few(t, "states", rapid.SampledFrom(nixie.States())),
		Reasons:      few(t, "reasons", rapid.SampledFrom(nixie.Reasons())),
		Classes:      few(t, "classes", rapid.SampledFrom(nixie.Classes())),
		Causes:       few(t, "causes", rapid.SampledFrom(nixie.Causes())),
		Signature:    rapid.String().Draw(t, "signature"),
		Fingerprints: few(t, "fingerprints", rapid.String()),
		Text:         rapid.String().Draw(t, "text"),
		Redrivable:   rapid.Ptr(rapid.Bool(), true).Draw(t, "redrivable"),
		NeedsReview:  rapid.Ptr(rapid.Bool(), true).Draw(t, "needs review"),
		Age: nixie.Durations{Min: time.Duration(rapid.Int64Min(0).Draw(t, "min age")),
			Max: time.Duration(rapid.Int64Min(0).Draw(t, "max age"))},
		Died: times("died"), FirstFailed: times("first"), LastFailed: times("last"),
		Redrives: number("redrives"), Attempts: number("attempts"), Deliveries: number("deliveries"), Crashes: number("crashes"),
		Due:       times("due"),
		Operation: rapid.OneOf(rapid.Just(nixie.ID{}), id).Draw(t, "operation"),
	}
}

// few draws up to three values, nil for none.
func few[T any](t *rapid.T, name string, of *rapid.Generator[T]) []T {
	if drawn := rapid.SliceOfN(of, 0, 3).Draw(t, name); len(drawn) > 0 {
		return drawn
	}
	return nil
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilter(t)
		text := filter.Text(f)
		if len(text) > filter.MaxText {
			t.Skip("too long to be parsed")
		}
		got, err := filter.Parse(text, now)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !reflect.DeepEqual(got, f) {
			t.Fatalf("%q\n got %+v\nwant %+v", text, got, f)
		}
		if filter.Text(got) != text {
			t.Fatalf("not canonical: %q then %q", text, filter.Text(got))
		}
		if f.IsZero() != (text == "") {
			t.Fatalf("%q: IsZero is %v", text, f.IsZero())
		}
	})
}

// The strict comparisons of the text say exactly what they say of numbers,
// durations and moments at the bound and next to it.
func TestComparisonsAreExact(t *testing.T) {
	holds := func(op string, at int) bool {
		return map[string]bool{"<": at < 0, "<=": at <= 0, ">": at > 0, ">=": at >= 0}[op]
	}
	moment := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for _, op := range []string{"<", "<=", ">", ">="} {
		number := parseFilter(t, "redrives:"+op+"7").Redrives
		age := parseFilter(t, "age:"+op+"1h").Age
		times := parseFilter(t, "died:"+op+"2026-01-01T10:00:00Z").Died
		for at := -1; at <= 1; at++ {
			if number.Holds(int64(7+at)) != holds(op, at) {
				t.Errorf("redrives:%s7 is wrong for %d", op, 7+at)
			}
			if age.Holds(time.Hour+time.Duration(at)) != holds(op, at) {
				t.Errorf("age:%s1h is wrong for 1h%+dns", op, at)
			}
			if times.Holds(moment.Add(time.Duration(at))) != holds(op, at) {
				t.Errorf("died:%s… is wrong for the moment %+dns", op, at)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "queue:orders reason:timeout,dependency age:>1h first_failed:<2026-01-01", `text:"a \"b\" \\"`,
		"age:>=1w2d3h4m5.5s redrives:>0 redrives:<9", "died:>now-2h died:<=2026-01-01T10:00:00.5+01:00",
		"id:01890a5d-ac96-774b-bcce-b302099a8057 redrivable:no needs_review:true", `key:"",",` + "\x00\xff", "operation:x",
		"died>\x00", "-died:\x1b[2J",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := filter.Parse(text, now)
		if err != nil {
			var fe *filter.Error
			if !errors.As(err, &fe) || fe.Column < 1 || fe.Column > len([]rune(text))+1 || !got.IsZero() {
				t.Fatalf("%q: %+v, %v", text, got, err)
			}
			for _, r := range fe.Error() {
				if r < ' ' && r != '\n' || r == 0x7f {
					t.Fatalf("%q: the error holds the control character %q", text, r)
				}
			}
			return
		}
		if got.IsZero() != (strings.Trim(text, " \t\r\n") == "") {
			t.Fatalf("%q became %+v", text, got)
		}
		again, err := filter.Parse(filter.Text(got), now)
		if len(filter.Text(got)) <= filter.MaxText && (err != nil || !reflect.DeepEqual(again, got)) {
			t.Fatalf("%q: its text %q is %+v, %v; want %+v", text, filter.Text(got), again, err, got)
		}
	})
}
