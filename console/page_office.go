package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of the first page.
const (
	maxAlerts        = 8   // causes that need attention
	maxStops         = 12  // other things that do
	maxSparks        = 20  // queues or causes with a sparkline
	sumQueues        = 200 // queues whose sparklines are read for their sum
	operationsLooked = 20  // newest operations, in which stopped ones are searched
)

func officePage() page {
	return page{path: "{$}", title: "Office", menu: "office", file: "office", live: true, show: (*console).showOffice}
}

// officeData is the first page: what needs attention, then the queues.
type officeData struct {
	Waiting   int64     // letters for an operator
	Died      int64     // in the last hour
	Rates     rates     // of all queues
	Oldest    time.Time // since when the longest ready message of all is due
	Hours     []int64
	Attention []alert
	More      int // causes that are not among them
	Stops     int // other things that are not among them
	Queues    []queueRow
	Rest      int // queues that are not among them
}

// queueRow is a queue in a list.
type queueRow struct {
	office.QueueView
	Hours []int64 // deaths of the last hours; nil beyond the first rows
	Rates rates
}

func (c *console) showOffice(r *http.Request) (answer, error) {
	ctx, now := r.Context(), c.Clock()
	d := officeData{}
	names, err := c.office.AllSettings(ctx)
	if err != nil {
		return answer{}, err
	}
	all := waiting(nixie.Filter{})
	var causes []office.Count
	var lately causesLately
	var queues []office.QueueInfo
	var hours map[string][]int64
	err = atOnce(ctx, // those first that take longest where causes are very many
		func() (err error) { causes, _, err = c.causes(ctx, all); return err },
		func() (err error) { lately.hour, err = c.diedSince(ctx, all, now.Add(-time.Hour)); return err },
		func() (err error) {
			if queues, err = c.office.Queues(ctx); err != nil {
				return err
			}
			return c.addStops(ctx, queues, &d)
		},
		func() (err error) { hours, err = c.deathsOfAll(ctx, names, &d); return err },
	)
	if err != nil {
		return answer{}, err
	}
	for _, n := range causes {
		d.Waiting += n.Count
	}
	lately.before = now.Sub(sparksFrom(now)) - time.Hour
	if err := c.addDay(ctx, causes, &lately); err != nil {
		return answer{}, err
	}
	if err := c.addCauses(ctx, causes, &lately, &d); err != nil {
		return answer{}, err
	}
	d.order()
	c.flow.add(queues, now)
	for i := range queues {
		d.Died += queues[i].Died
		if at := queues[i].OldestAt; !at.IsZero() && (d.Oldest.IsZero() || at.Before(d.Oldest)) {
			d.Oldest = at
		}
		if f := c.flow.of(&queues[i], now); f.Known() {
			d.Rates.In, d.Rates.Out, d.Rates.Over = d.Rates.In+f.In, d.Rates.Out+f.Out, max(d.Rates.Over, f.Over)
		}
	}
	d.Rest = max(0, len(queues)-maxSparks)
	d.Queues = c.queueRows(queues[:len(queues)-d.Rest], hours)
	return answer{Data: d}, nil
}

// waiting narrows a filter to letters that wait for an operator, unless it names statuses.
func waiting(f nixie.Filter) nixie.Filter {
	if len(f.Statuses) == 0 {
		f.Statuses = []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
	}
	return f
}

// deaths counts the letters that match by the last hours of their death.
func (c *console) deaths(ctx context.Context, f nixie.Filter) ([]int64, error) {
	now := c.Clock()
	f.Died.After = sparksFrom(now)
	counts, _, err := c.office.CountBy(ctx, f, office.ByHour)
	if err != nil {
		return nil, err
	}
	by := map[string]int64{}
	for _, n := range counts[0] {
		by[n.Value] = n.Count
	}
	return byHours(by, now), nil
}

// deathsOfAll counts all letters by the last hours of their death, and those of the first queues.
// It asks once where there are few queues, else for all letters and then for those queues.
func (c *console) deathsOfAll(ctx context.Context, queues []office.QueueInfo, d *officeData) (hours map[string][]int64, err error) {
	if len(queues) > sumQueues {
		if d.Hours, err = c.deaths(ctx, nixie.Filter{}); err != nil {
			return nil, err
		}
		return c.deathsIn(ctx, ofQueues(queues[:maxSparks]), queues[:maxSparks])
	}
	d.Hours = make([]int64, sparkHours)
	hours, err = c.deathsIn(ctx, nixie.Filter{}, queues)
	for _, list := range hours {
		for i := range list {
			d.Hours[i] += list[i]
		}
	}
	return hours, err
}

// ofQueues chooses the letters of some queues.
func ofQueues(queues []office.QueueInfo) (f nixie.Filter) {
	for i := range queues {
		f.Queues = append(f.Queues, queues[i].Name)
	}
	return f
}

// deathsIn counts the letters that match by the last hours of their death, for each of some queues,
// in one question.
func (c *console) deathsIn(ctx context.Context, f nixie.Filter, queues []office.QueueInfo) (map[string][]int64, error) {
	now := c.Clock()
	f.Died.After = sparksFrom(now)
	counts, _, err := c.office.CountBy(ctx, f, office.ByQueueHour)
	if err != nil {
		return nil, err
	}
	by := map[string]map[string]int64{}
	for _, n := range counts[0] {
		hour, queue, _ := strings.Cut(n.Value, " ")
		if by[queue] == nil {
			by[queue] = map[string]int64{}
		}
		by[queue][hour] = n.Count
	}
	hours := map[string][]int64{}
	for i := range queues {
		hours[queues[i].Name] = byHours(by[queues[i].Name], now)
	}
	return hours, nil
}

// sparksFrom returns when the first hour of a sparkline began.
func sparksFrom(now time.Time) time.Time {
	return now.Truncate(time.Hour).Add((1 - sparkHours) * time.Hour)
}
