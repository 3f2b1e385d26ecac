package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of a list of messages.
const (
	messagesShown = 50
	queuesOffered = 12 // queues with the most messages of a stage, to choose from
)

func messagesPage() page {
	return page{path: "messages", title: "Messages", menu: "messages", file: "messages", live: true, show: (*console).showMessages,
		verbs: amendments()}
}

// messagesData is one page of the messages of a stage.
type messagesData struct {
	search
	console *console
	Stage   office.Stage // "": all
	Stages  []staged
	All     int64 // of the stage, in the queues of the filter
	Rows    []office.MessageView
	Queues  []office.Count // with the most of the stage; none when the filter names one
	Next    string
	First   bool
}

// staged is a stage with the number of its messages.
type staged struct {
	Stage office.Stage
	Count int64
}

func (c *console) showMessages(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := messagesData{search: c.search(r), console: c, Stage: office.Stage(r.FormValue("stage")), First: r.FormValue("cursor") == ""}
	if d.Stage != "" && !slices.Contains(office.Stages(), d.Stage) {
		return answer{}, nixie.Errorf(nixie.CodeInvalid, "stage %.40q is not one of %v", d.Stage, office.Stages())
	}
	if to, err := c.findMessage(r, &d); to != "" || err != nil {
		return answer{To: to}, err
	}
	if err := c.addStages(ctx, &d); err != nil || d.Fault != nil {
		return answer{Data: d}, err
	}
	list, next, err := c.office.Staged(ctx, d.filter, d.Stage, office.Page{Limit: messagesShown, Cursor: r.FormValue("cursor")})
	if nixie.CodeOf(err) == nixie.CodeInvalid && d.First { // the filter, not the cursor
		d.Fault = &fault{Message: err.Error()}
		return answer{Data: d}, nil
	}
	for i := range list {
		d.Rows = append(d.Rows, office.ViewMessage(&list[i].Message))
	}
	d.Next = next
	return answer{Data: d}, err
}

// findMessage returns the address of the message whose ID or key was written instead of a filter.
func (c *console) findMessage(r *http.Request, d *messagesData) (to string, err error) {
	if d.Filter == "" || d.Fault == nil && strings.Contains(d.Filter, ":") {
		return "", nil
	}
	m, err := c.office.Message(r.Context(), d.Filter)
	switch nixie.CodeOf(err) {
	case "":
		return c.link("message/" + m.ID.String()), nil
	case nixie.CodeNotFound:
		return "", nil
	}
	return "", err
}

// addStages counts the messages of each stage in the queues of the filter, by the counters of the
// queues.
func (c *console) addStages(ctx context.Context, d *messagesData) error {
	queues, err := c.office.Queues(ctx)
	if err != nil {
		return err
	}
	if names := d.filter.Queues; len(names) > 0 {
		queues = slices.DeleteFunc(queues, func(q office.QueueInfo) bool { return !slices.Contains(names, q.Name) })
	}
	again, err := c.office.RetryingIn(ctx)
	if err != nil {
		return err
	}
	retrying := map[string]int64{}
	for _, n := range again {
		retrying[n.Value] = n.Count
	}
	for _, stage := range office.Stages() {
		s := staged{Stage: stage}
		for i := range queues {
			n := countOf(&queues[i], stage)
			if stage == office.StageRetrying {
				n = retrying[queues[i].Name]
			}
			s.Count += n
			if stage == d.Stage && n > 0 && len(d.filter.Queues) != 1 {
				d.Queues = append(d.Queues, office.Count{Value: queues[i].Name, Count: n})
			}
		}
		if d.Stages = append(d.Stages, s); stage == d.Stage {
			d.All = s.Count
		}
	}
	slices.SortStableFunc(d.Queues, func(a, b office.Count) int { return cmp.Compare(b.Count, a.Count) })
	d.Queues = d.Queues[:min(len(d.Queues), queuesOffered)]
	return nil
}

// countOf returns how many messages of a stage a queue has by its counters, which still count those
// that were removed.
func countOf(q *office.QueueInfo, stage office.Stage) int64 {
	switch stage {
	case office.StageReady:
		return q.Ready
	case office.StageRunning:
		return q.Leased
	case office.StageScheduled:
		return q.Scheduled
	case office.StageBlocked:
		return q.Blocked
	case office.StageSucceeded:
		return q.Succeeded
	case office.StageDiscarded:
		return q.Discarded
	case office.StageCanceled:
		return q.Canceled
	case office.StageRetrying: // no counter of a queue has it
	}
	return 0
}

// At returns the address of this list from a cursor on.
func (d messagesData) At(cursor string) string {
	return d.console.link("messages", "stage", d.Stage, "filter", d.Filter, "cursor", cursor)
}

// Of returns the address of the list of another stage.
func (d messagesData) Of(stage office.Stage) string {
	return d.console.link("messages", "stage", stage, "filter", d.Filter)
}

// In returns the address of this list in one queue.
func (d messagesData) In(queue string) string {
	return d.console.link("messages", "stage", d.Stage, "filter", d.With("queue", queue))
}

// Bulk returns the address of a verb on the selected messages, which leads back to this list.
func (d messagesData) Bulk(verb string) string {
	return d.console.link("messages/"+verb, "stage", d.Stage, "filter", d.Filter)
}

// Can reports whether the selected messages can be changed.
func (d messagesData) Can() bool { return d.Stage.Waits() || d.Stage == office.StageRunning }

// Ended reports whether the messages of the stage have ended.
func (d messagesData) Ended() bool { return d.Stage != "" && !d.Can() }

// When names the moment that a row of the stage has.
func (d messagesData) When() string {
	switch {
	case d.Stage == office.StageRunning:
		return "Held since"
	case d.Stage.Waits():
		return "Due"
	case d.Stage == "":
		return "Enqueued"
	}
	return "Ended"
}

// stagedLink is the number of messages of a stage in a queue, and where they are listed.
type stagedLink struct {
	To    string
	Count int64
}

func (c *console) staged(stage office.Stage, queue string, n int64) stagedLink {
	return stagedLink{c.link("messages", "stage", stage, "filter", term("queue", queue)), n}
}
