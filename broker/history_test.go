package broker

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// plainHistory encodes a history with encoding/json, which also reads it.
func plainHistory(t *testing.T, list []nixie.Failure, dropped int) (text string, ok bool) {
	s := historyJSON{Dropped: dropped}
	for _, f := range list {
		f.Text, f.Stack, f.Context, f.Steps, f.Attachments = cut(f.Text, maxHistoryText), "", nil, nil, nil
		s.Failures = append(s.Failures, failureJSON{f, f.Took})
	}
	for {
		data, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) <= maxHistoryBytes || len(s.Failures) <= 2 {
			return string(data), len(data) <= maxHistoryBytes
		}
		s.Failures = append(s.Failures[:1], s.Failures[2:]...)
		s.Dropped++
	}
}

// A history header equals the output of encoding/json byte for byte, also if failures had to be
// dropped for its size.
func TestHistoryIsThatOfEncodingJSON(t *testing.T) {
	at := time.Date(2026, 11, 22, 3, 4, 5, 678, time.UTC)
	code := 3
	for _, text := range []string{"", "refused", `a "quoted" \ text & <more>`, "\x00\xff\u2028 é", strings.Repeat("long ", 200),
		strings.Repeat("é", 200)} {
		for _, n := range []int{1, 2, 3, 15, 40} {
			for dropped := range 2 {
				var list []nixie.Failure
				for i := range n {
					f := nixie.Failure{
						Generation: 1, Attempt: i + 1, StartedAt: at, FailedAt: at.Add(time.Duration(i) * time.Second),
						Took:  time.Duration(i),
						Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Type: "*x", Text: fmt.Sprint(text, i),
						Context: []string{text}, Stack: text, Node: text, Decision: nixie.Retry,
					}
					if i%2 == 1 {
						f.ExitCode, f.NextAt = &code, at
					}
					list = append(list, f)
				}
				want, fits := plainHistory(t, list, dropped)
				w := headerWriter{values: []byte("before")}
				w.history(list, dropped)
				if got, there := headerValue(w.headers, HeaderHistory); there != fits || fits && got != want {
					t.Fatalf("%d of %.10q: got  %s\nwant %s", n, text, got, want)
				}
				if len(list) != n || list[n-1].Attempt != n {
					t.Fatal("the list that was given was changed")
				}
			}
		}
	}
}

// A letter has the same ID in all versions, because an office recognises it by that.
func TestLetterIDStaysTheSame(t *testing.T) {
	m := nixie.Message{ID: nixie.ID{1, 2, 3, 4, 5, 6, 7, 8}, Generation: 3}
	sum := sha256.Sum256(slices.Concat([]byte("letter"), m.ID[:], []byte{0, 0, 0, 0, 0, 0, 0, 3}))
	want := slices.Concat(m.ID[:6], sum[:10])
	want[6], want[8] = want[6]&0x0f|0x70, want[8]&0x3f|0x80
	if got := letterID(m.ID, m.Generation); !slices.Equal(got[:], want) {
		t.Errorf("got %x, want %x", got, want)
	}
}
