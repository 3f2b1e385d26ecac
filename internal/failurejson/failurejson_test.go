package failurejson_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/failurejson"
)

// same fails when Append and encoding/json differ.
func same(t *testing.T, f *nixie.Failure) {
	t.Helper()
	want, wrong := json.Marshal(f)
	got, err := failurejson.Append([]byte("before"), f)
	if (err == nil) != (wrong == nil) {
		t.Fatalf("got error %v, encoding/json %v", err, wrong)
	}
	if err == nil && string(got) != "before"+string(want) {
		t.Fatalf("got  %s\nwant before%s", got, want)
	}
}

// The test fills the fields by reflection, so that a new field must be written too.
func TestFieldsAreThoseOfEncodingJSON(t *testing.T) {
	same(t, &nixie.Failure{})
	same(t, &nixie.Failure{Context: []string{}, Steps: []string{}, Attachments: []nixie.Attachment{}})
	kind := reflect.TypeFor[nixie.Failure]()
	all := reflect.New(kind).Elem()
	for i := range kind.NumField() {
		one := reflect.New(kind).Elem()
		for _, v := range []reflect.Value{all.Field(i), one.Field(i)} {
			switch to := v.Addr().Interface().(type) {
			case *time.Time:
				*to = time.Date(2026, 11, 22, 3, 4, 5, 60_000*(i+1), time.FixedZone("", 3600*i))
			case *time.Duration:
				*to = time.Duration(i)
			case **int:
				code := i - 100
				*to = &code
			case *[]string:
				*to = []string{"a", "", kind.Field(i).Name}
			case *[]nixie.Attachment:
				*to = []nixie.Attachment{{Name: "log", Data: []byte{0, 1, 255}, Truncated: 3}, {}}
			case *error:
			default:
				switch v.Kind() {
				case reflect.String:
					v.SetString(kind.Field(i).Name)
				case reflect.Int:
					v.SetInt(int64(i + 1))
				default:
					t.Fatalf("field %s is of type %s: say how it is written", kind.Field(i).Name, v.Type())
				}
			}
		}
		same(t, one.Addr().Interface().(*nixie.Failure))
	}
	same(t, all.Addr().Interface().(*nixie.Failure))
}

func TestEveryByte(t *testing.T) {
	for c := range 256 {
		same(t, &nixie.Failure{Text: "a" + string([]byte{byte(c)}), Context: []string{string(rune(c))}})
	}
}

func TestTimesThatHaveNoForm(t *testing.T) {
	for _, at := range []time.Time{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(0, 0).In(time.FixedZone("", 25*3600))} {
		same(t, &nixie.Failure{StartedAt: at})
		same(t, &nixie.Failure{FailedAt: at})
		same(t, &nixie.Failure{NextAt: at})
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("connection to 10.0.0.7:5432 was refused", "charge", int64(0), int64(0), 1, false)
	f.Add("a \"quoted\" \\ <tag> & \u2028 more", "\xff\x00\x7f", int64(1_800_000_000), int64(1), -1, true)
	f.Add("h\u00e9llo \u4e16\u754c", "\t\r\n", int64(-62_135_596_800), int64(999_999_999), 255, true)
	f.Add("", "~ !", int64(253_402_300_800), int64(100), 0, false)
	f.Fuzz(func(t *testing.T, text, other string, seconds, nanoseconds int64, number int, more bool) {
		at := time.Unix(seconds, nanoseconds)
		failure := nixie.Failure{
			Generation: number, Attempt: -number, StartedAt: at, FailedAt: at.UTC(), Class: nixie.Class(other), Reason: nixie.Reason(text),
			Type: other, Text: text, Stack: text + other, Step: other, Worker: text, Node: other, LogLocation: text,
			Decision: nixie.Verb(other),
		}
		if more {
			failure.Context, failure.Steps, failure.ExitCode, failure.NextAt = []string{text, other}, []string{other}, &number,
				at.In(time.FixedZone("", number%90_000))
			failure.Attachments = []nixie.Attachment{{Name: text, Data: []byte(other), Truncated: seconds}}
		}
		same(t, &failure)
	})
}

func BenchmarkAppend(b *testing.B) {
	at := time.Unix(1_800_000_000, 123_456_789).UTC()
	f := &nixie.Failure{
		Generation: 1, Attempt: 1, StartedAt: at, FailedAt: at.Add(time.Millisecond), Class: nixie.ClassUnknown,
		Reason: nixie.ReasonHandler,
		Type:   "*errors.errorString", Text: "connection to 10.0.0.7:5432 was refused", Context: []string{"order 17"}, Worker: "worker",
		Node: "node", Decision: nixie.Retry, NextAt: at,
	}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var to []byte
		for b.Loop() {
			to, _ = failurejson.Append(to[:0], f)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(f)
		}
	})
}
