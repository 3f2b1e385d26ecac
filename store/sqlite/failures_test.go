package sqlite

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

// The store encodes a failure without package json, and the text is the same, byte for byte.
func TestFailuresAreThoseOfEncodingJSON(t *testing.T) {
	at, code := time.Date(2026, 11, 22, 3, 4, 5, 678, time.UTC), 3
	for _, f := range []nixie.Failure{
		{},
		{
			Generation: 2, Attempt: 3, StartedAt: at, FailedAt: at.Add(time.Second), Took: time.Second, Class: nixie.ClassTransient,
			Reason: nixie.ReasonTimeout, Type: "*x",
			Text: "left out", Context: []string{"a", "<b> & \"c\""}, Stack: "main.f()\n\tx.go:1\n", Step: "pay", Worker: "w", Node: "n",
			ExitCode: &code, LogLocation: "/x",
			Steps: []string{"one"}, NextAt: at, Attachments: []nixie.Attachment{{Name: "left out"}}, Err: errors.New("left out"),
		},
	} {
		kept := f
		kept.Text, kept.Attachments = "", nil
		want, err := json.Marshal(failureDoc{kept, f.Took})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := docOf(&f); err != nil || got != string(want) {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if _, err := docOf(&nixie.Failure{FailedAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}); nixie.CodeOf(err) != nixie.CodeInternal {
		t.Errorf("a time that has no form: %v", err)
	}
}
