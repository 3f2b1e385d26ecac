package console

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie/office"
)

// sparkHours is the number of hours that a sparkline shows.
const sparkHours = 24

// spark draws counts as bars. Their numbers are its label.
func spark(counts []int64) template.HTML {
	most, total := int64(1), int64(0)
	for _, n := range counts {
		most, total = max(most, n), total+n
	}
	var b strings.Builder
	label := fmt.Sprintf("%d in the last %d hours, at most %d in one", total, len(counts), most)
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d 20" role="img" aria-label="%s"><title>%[2]s</title>`, 4*len(counts), label)
	b.WriteString(`<path d="`)
	for i, n := range counts {
		height := int64(1)
		if n > 0 {
			height = 2 + 18*n/most
		}
		fmt.Fprintf(&b, "M%d 20v-%d", 4*i+2, height)
	}
	return template.HTML(b.String() + `"/></svg>`) //nolint:gosec // numbers
}

// byHours returns the counts of the last hours, latest last, from counts by the name of their hour.
func byHours(by map[string]int64, now time.Time) []int64 {
	list := make([]int64, sparkHours)
	for i := range list {
		list[i] = by[now.Add(time.Duration(i+1-sparkHours)*time.Hour).UTC().Format(office.HourForm)]
	}
	return list
}

// hour is a bar of a sparkline.
type hour struct {
	At    time.Time
	Count int64
}

// hours returns the counts of the last hours, latest first, with the times at which the hours
// began.
func (c *console) hours(counts []int64) []hour {
	list := make([]hour, len(counts))
	for i := range counts {
		list[i] = hour{c.Clock().Truncate(time.Hour).Add(-time.Duration(i) * time.Hour), counts[len(counts)-1-i]}
	}
	return list
}

// axis returns what is written under a sparkline: when its first hour began and its last hour does,
// and how many of them its highest bar stands for.
func (c *console) axis(counts []int64) []template.HTML {
	hours := c.hours(counts)
	most := template.HTML("highest: " + number(slices.Max(append(counts, 0)))) //nolint:gosec // a number
	return []template.HTML{c.time(hours[len(hours)-1].At, minuteForm), most, c.time(hours[0].At, minuteForm)}
}
