package lease

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

// The text is JSON, whichever way it was written, and is read as what it was.
func TestPatienceText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := func(name string) (at time.Time) {
			if rapid.Bool().Draw(t, "has "+name) {
				at = time.Unix(0, rapid.Int64Range(0, 4e18).Draw(t, name)).UTC()
			}
			return at
		}
		number := rapid.SampledFrom([]int{0, 0, 1, 25, 1 << 40})
		p := nixie.Patience{FailingSince: moment("failing"), RefusedSince: moment("refused"), Free: number.Draw(t, "free"),
			Tries: number.Draw(t, "tries"), Stops: number.Draw(t, "stops"), StoppedBy: rapid.String().Draw(t, "by")}
		want, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		text := PatienceText(p)
		if text != string(want) && (text != "" || p != nixie.Patience{}) {
			t.Fatalf("%q, want %q", text, want)
		}
		var known nixie.Patience
		if err := json.Unmarshal(want, &known); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadPatience(text); err != nil || got != known {
			t.Fatalf("%+v of %q, want %+v: %v", got, text, known, err)
		}
	})
	for _, text := range []string{"{", `{"free":-1}`, `{"failing_since":"yesterday"}`,
		`{"failing_since":"2026-01-02T03:04:05Z","tries":-1}`} {
		if p, err := ReadPatience(text); err == nil || p != (nixie.Patience{}) {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
}
