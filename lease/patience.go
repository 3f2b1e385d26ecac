package lease

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// GivenBack returns the patience of a message after a retry or release, and how many attempts that
// refunds. judged says that the holder only judged the message: it took no attempt and ran nothing,
// so its failure is none of the message's.
func GivenBack(p nixie.Patience, st *nixie.Settlement, judged bool, now time.Time) (after nixie.Patience, refund int) {
	if !judged && (st.Verb == nixie.Release || st.Waiver == nixie.WaiveTry) {
		refund = 1
	}
	if st.Verb == nixie.Retry && !judged {
		p.Stops, p.StoppedBy = 0, ""
		if p.FailingSince.IsZero() {
			p.FailingSince = now
		}
	}
	switch st.Waiver {
	case nixie.NoWaiver:
		return p, refund
	case nixie.WaiveTry:
		p.Tries++
	case nixie.WaiveUnknown:
		if p.RefusedSince.IsZero() {
			p.RefusedSince = now
		}
	}
	p.Free++
	return p, refund
}

// failing and failed enclose the moment in the JSON of a patience that has nothing else.
const (
	failing = `{"failing_since":"`
	failed  = `"}`
)

// PatienceText returns a patience as JSON, which json.Unmarshal reads. It is empty for the zero
// value.
func PatienceText(p nixie.Patience) string {
	switch p {
	case nixie.Patience{}:
		return ""
	case nixie.Patience{FailingSince: p.FailingSince}: // of each message that failed: it has to cost little
		var room [len(failing) + len(time.RFC3339Nano) + len(failed)]byte
		return string(append(p.FailingSince.AppendFormat(append(room[:0], failing...), time.RFC3339Nano), failed...))
	}
	text, _ := json.Marshal(p) // of numbers and moments: it cannot fail
	return string(text)
}

// ReadPatience reads what [PatienceText] returned. Of any other text, and of numbers below zero, it
// returns the zero value and an error.
func ReadPatience(text string) (p nixie.Patience, err error) {
	if text == "" {
		return p, nil
	}
	if since, ok := strings.CutPrefix(text, failing); ok {
		since, _ = strings.CutSuffix(since, failed)
		if at, err := time.Parse(time.RFC3339Nano, since); err == nil {
			return nixie.Patience{FailingSince: at}, nil
		}
	}
	if err = json.Unmarshal([]byte(text), &p); err == nil && min(p.Free, p.Tries, p.Stops) < 0 {
		err = nixie.Errorf(nixie.CodeInvalid, "a number is below zero")
	}
	if err != nil {
		return nixie.Patience{}, nixie.Errorf(nixie.CodeInternal, "stored patience %.60q is damaged: %w", text, err)
	}
	return p, nil
}
