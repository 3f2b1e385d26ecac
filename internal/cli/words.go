package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie/office"
)

// clock writes a time for people, to the second, in the zone of this machine.
func clock(m office.Timestamp) string {
	if m.IsZero() {
		return "-"
	}
	return inZone(m, time.Local)
}

func inZone(m office.Timestamp, zone *time.Location) string {
	return m.In(zone).Format("2006-01-02 15:04:05Z07:00")
}

// moment is clock for a time outside a view.
func moment(t time.Time) string { return clock(office.Timestamp{Time: t}) }

// age writes a duration in its two largest units.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// took writes how long an attempt lasted.
func took(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', -1, 64) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "s"
	}
	return age(d)
}

// plural writes a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey") {
		return strconv.FormatInt(n, 10) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}

// either chooses one of two texts.
func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func yesNo(b bool) string { return either(b, "yes", "no") }

// orDash shows an empty text.
func orDash(s string) string { return cmp.Or(s, "-") }

func numeral(n int64) string { return strconv.FormatInt(n, 10) }
