package postgres

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// Everything that a failure says is kept, but for what has columns of its own. The fields are
// filled by reflection, so that one that is added has to be kept too.
func TestFailureDoc(t *testing.T) {
	columns := map[string]bool{"Class": true, "Reason": true, "Text": true, "Decision": true, "Attachments": true, "Err": true}
	for _, text := range []string{"plain", `a "quoted" \ text`, "lines\n\tand <tags> & more", "h\u00e9llo \u4e16\u754c",
		strings.Repeat("long ", 1000)} {
		var f nixie.Failure
		v := reflect.ValueOf(&f).Elem()
		for i := range v.NumField() {
			if columns[v.Type().Field(i).Name] {
				continue
			}
			switch to := v.Field(i).Addr().Interface().(type) {
			case *int:
				*to = i + 1
			case *string:
				*to = text
			case *[]string:
				*to = []string{text, "", text}
			case *time.Time:
				*to = time.Date(2026, 11, 22, 3, 4, 5, i+1, time.UTC)
			case *time.Duration:
				*to = time.Duration(i)
			case **int:
				*to = new(int)
			default:
				t.Fatalf("field %s is of type %T: say how it is kept", v.Type().Field(i).Name, to)
			}
		}
		if back, err := decodeFailure(string(appendFailure(nil, &f, f.Steps))); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("%.20q: got %+v, %v, want %+v", text, back, err, f)
		}
	}
}

func TestFailureDocOfNothing(t *testing.T) {
	for _, f := range []nixie.Failure{{}, {Context: []string{}, Steps: []string{}}} {
		if back, err := decodeFailure(string(appendFailure(nil, &f, f.Steps))); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("got %+v, %v, want %+v", back, err, f)
		}
	}
}
