package command

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// dates are the forms of a moment in retry_after: the three of HTTP (RFC 9110, 5.6.7) and RFC 3339.
var dates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC, time.RFC3339}

// readDelay reads the value of retry_after: a number of seconds, a duration, or a moment, from
// which it takes now. A wait comes from clocks that differ, so what is past is now and what is too
// far is the longest delay, as in [nixie.RetryAfter].
func readDelay(decoder *json.Decoder, now time.Time) (time.Duration, error) {
	token, err := decoder.Token()
	if err != nil {
		return 0, syntax(err)
	}
	switch value := token.(type) {
	case json.Number:
		return secondsOf(value.String()), nil
	case string:
		text, past := strings.CutPrefix(strings.TrimSpace(value), "-")
		delay, err := filter.ParseDuration(text)
		if err == nil && past {
			return 0, nil
		}
		if err == nil {
			return min(delay, nixie.MaxDelay), nil
		}
		if text != "" && strings.Trim(text, "0123456789") == "" { // as a header has it
			return secondsOf(value), nil
		}
		for _, form := range dates {
			if at, err := time.Parse(form, text); err == nil {
				return max(0, min(at.Sub(now), nixie.MaxDelay)), nil
			}
		}
		return 0, invalid("field retry_after is %s: give a duration like 30s, a number of seconds, or a date of HTTP or RFC 3339",
			quote(value))
	}
	return 0, invalid("field retry_after is neither a string nor a number")
}

// secondsOf reads a JSON number, from 0 to the longest delay.
func secondsOf(number string) time.Duration {
	seconds, _ := strconv.ParseFloat(strings.TrimSpace(number), 64) // an infinity beyond its range
	return time.Duration(math.Round(max(0, min(seconds, nixie.MaxDelay.Seconds())) * float64(time.Second)))
}
