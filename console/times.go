package console

import (
	"fmt"
	"html/template"
	"strconv"
	"time"

	"github.com/nixie-go/nixie/office"
)

func moment(at any) time.Time {
	switch at := at.(type) {
	case office.Timestamp:
		return at.Time
	case time.Time:
		return at
	}
	return time.Time{}
}

// age writes how long ago a moment was, or in how long it will be, with the moment on hover.
func (c *console) age(at time.Time) template.HTML {
	if at.IsZero() {
		return "–"
	}
	d := c.Clock().Sub(at)
	text := lasted(d.Abs())
	switch {
	case d < -time.Second:
		text = "in " + text
	case d < time.Second:
		text = "now"
	}
	return c.stamp(at, "", text)
}

// due writes in how long a moment will be, or since when it has been.
func (c *console) due(of office.Timestamp) template.HTML {
	if late := c.Clock().Sub(of.Time); late > time.Second {
		return c.stamp(of.Time, "", "due since "+lasted(late))
	}
	return c.age(of.Time)
}

// Forms of times of day. The script of a page writes them again in the zone of its reader, as
// times.js says: each is the beginning of the longest.
const (
	secondForm = "2006-01-02 15:04:05"
	minuteForm = "2006-01-02 15:04"
)

// time writes a moment in the zone of the console.
func (c *console) time(at time.Time, form string) template.HTML {
	if at.IsZero() {
		return "–"
	}
	return c.stamp(at, "clock", at.In(c.Zone).Format(form))
}

// stamp marks a text of ours as a moment, which is on hover.
func (c *console) stamp(at time.Time, class, text string) template.HTML {
	if class != "" {
		class = ` class="` + class + `"`
	}
	return template.HTML(`<time` + class + ` datetime="` + at.UTC().Format(time.RFC3339) + //nolint:gosec // digits and words
		`" title="` + at.In(c.Zone).Format(secondForm+" -07:00") + `">` + text + `</time>`)
}

// zone names the zone of the console, with its distance from UTC by now.
func (c *console) zone() string {
	now := c.Clock().In(c.Zone)
	name := c.Zone.String()
	if name == "Local" {
		name, _ = now.Zone()
	}
	if name == "UTC" {
		return name
	}
	return name + now.Format(" (UTC-07:00)")
}

// lasted writes a duration by its largest unit, or two.
func lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d/time.Hour), int(d%time.Hour/time.Minute))
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days"
}

// took writes milliseconds.
func took(ms float64) string {
	return (time.Duration(ms * float64(time.Millisecond))).Round(time.Millisecond / 10).String()
}
