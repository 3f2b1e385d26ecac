package console

import (
	"net/http"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// queuesShown is the number of queues on one page.
const queuesShown = 100

func queuesPage() page {
	return page{path: "queues", title: "Queues", menu: "queues", file: "queues", live: true, show: (*console).showQueues}
}

// queuesData is one page of all queues.
type queuesData struct {
	Queues []queueRow
	span
}

func (c *console) showQueues(r *http.Request) (answer, error) {
	queues, err := c.office.Queues(r.Context())
	if err != nil {
		return answer{}, err
	}
	c.flow.add(queues, c.Clock())
	d := queuesData{span: spanOf(r, len(queues), queuesShown)}
	queues = queues[d.From:d.To]
	sparks := queues[:min(len(queues), maxSparks)]
	hours, err := c.deathsIn(r.Context(), ofQueues(sparks), sparks)
	d.Queues = c.queueRows(queues, hours)
	return answer{Data: d}, err
}

// queueRows makes the rows of queues, with the sparklines that there are.
func (c *console) queueRows(queues []office.QueueInfo, hours map[string][]int64) []queueRow {
	rows := make([]queueRow, len(queues))
	for i := range queues {
		rows[i].QueueView, rows[i].Rates = c.office.ViewQueue(&queues[i]), c.flow.of(&queues[i], c.Clock())
		rows[i].Hours = hours[queues[i].Name]
	}
	return rows
}

func queuePage() page {
	return page{path: "queue", title: "Queue", file: "queue", live: true, show: (*console).showQueue,
		verbs: map[string]verb{"pause": (*console).pause, "resume": (*console).unpause, "drain": (*console).drain}}
}

// queueData is one queue with its settings and the causes of its letters.
type queueData struct {
	office.QueueView
	Hours    []int64
	Rates    rates
	Left     int64 // messages that have not ended
	Acts     []act
	Settings office.SettingsView
	Groups   []office.GroupView
	Filter   string
}

func (c *console) showQueue(r *http.Request) (answer, error) {
	ctx, name := r.Context(), r.FormValue("name")
	q, err := c.office.Queue(ctx, name)
	if err != nil {
		return answer{}, err
	}
	f := nixie.Filter{Queues: []string{name}}
	d := queueData{QueueView: c.office.ViewQueue(&q), Filter: office.FilterText(f), Rates: c.flow.of(&q, c.Clock()), Left: q.Unfinished()}
	d.Acts = c.queueActs(&q)
	if d.Hours, err = c.deaths(ctx, f); err != nil {
		return answer{}, err
	}
	if d.Settings, err = c.office.Settings(ctx, name); err != nil {
		return answer{}, err
	}
	causes, _, err := c.causes(ctx, waiting(f))
	if err != nil {
		return answer{}, err
	}
	d.Groups, err = c.described(ctx, waiting(f), causes[:min(len(causes), maxAlerts)])
	return answer{Title: line(name), Data: d}, err
}

// queueActs returns what can be done with a queue.
func (c *console) queueActs(q *office.QueueInfo) []act {
	to := func(verb string) string { return c.link("queue/"+verb, "name", q.Name) }
	var acts []act
	if q.Settings.Paused || q.Settings.Closed {
		acts = append(acts, act{To: to("resume"), Name: "Resume", Text: "Workers claim messages again, and the queue takes new ones."})
	}
	if !q.Settings.Paused {
		acts = append(acts, act{To: to("pause"), Name: "Pause",
			Text: "Workers find nothing from their next poll on. What they hold goes on."})
	}
	if !q.Settings.Paused && !q.Settings.Closed {
		acts = append(acts, act{To: to("drain"), Name: "Drain",
			Text: "The queue takes no new messages; its workers finish the " + plural(q.Unfinished(), "message") + " that it has."})
	}
	return acts
}

// pause stops the claims of a queue.
func (c *console) pause(r *http.Request) (string, error) {
	name := r.FormValue("name")
	_, err := c.office.Pause(r.Context(), []string{name}, reason(r))
	return c.done("queue", "paused", 1, "", "name", name), err
}

// drain closes a queue to new messages. Its page says how many are left.
func (c *console) drain(r *http.Request) (string, error) {
	name := r.FormValue("name")
	return c.done("queue", "draining", 1, "", "name", name), c.office.CloseQueue(r.Context(), name, reason(r))
}

// unpause ends the pause, the halt and the closing of a queue.
func (c *console) unpause(r *http.Request) (string, error) {
	name := r.FormValue("name")
	_, err := c.office.Resume(r.Context(), []string{name}, reason(r))
	return c.done("queue", "resumed", 1, "", "name", name), err
}
