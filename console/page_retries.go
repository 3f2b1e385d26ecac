package console

import (
	"net/http"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// retriesShown is the number of messages on the page, those that are due next.
const retriesShown = 100

func retriesPage() page {
	return page{path: "retries", title: "Retries", menu: "retries", file: "retries", live: true, show: (*console).showRetries,
		verbs: map[string]verb{"now": (*console).retryNow, "cancel": (*console).cancelRetries, "hold": (*console).holdRetries}}
}

// retriesData has the messages that failed and wait for their next attempt.
type retriesData struct {
	Queue    string
	Waiting  int64
	Running  int64
	Attempts []office.AttemptsView
	Reasons  []office.ReasonView
	Next     []office.RetryingView
	More     bool
}

func (c *console) showRetries(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := retriesData{Queue: r.FormValue("queue")}
	var queues []string
	if d.Queue != "" {
		queues = []string{d.Queue}
	}
	attempts, err := c.office.Retries(ctx, queues)
	if err != nil {
		return answer{}, err
	}
	for _, a := range attempts {
		d.Waiting, d.Running = d.Waiting+a.Queued, d.Running+a.Leased
		if a.Queued+a.Leased > 0 {
			d.Attempts = append(d.Attempts, a)
		}
	}
	if d.Waiting == 0 {
		return answer{Data: d}, nil
	}
	reasons, err := c.office.Reasons(ctx, queues)
	if err != nil {
		return answer{}, err
	}
	for _, n := range reasons {
		if n.Retrying > 0 {
			d.Reasons = append(d.Reasons, n)
		}
	}
	d.Next, d.More, err = c.office.NextRetries(ctx, queues, retriesShown)
	return answer{Data: d}, err
}

// retryNow makes the selected messages due.
func (c *console) retryNow(r *http.Request) (string, error) {
	return c.amend(r, &office.AmendRequest{Verb: office.RetryNow}, "retried")
}

// cancelRetries ends the selected messages, without a letter.
func (c *console) cancelRetries(r *http.Request) (string, error) {
	return c.amend(r, &office.AmendRequest{Verb: office.Cancel}, "canceled")
}

// holdRetries buries the selected messages, so that a person looks at them.
func (c *console) holdRetries(r *http.Request) (string, error) {
	return c.amend(r, &office.AmendRequest{Verb: office.HoldMessage}, "held")
}

// amend changes the selected messages. If one cannot be changed, the error says which and why, and
// how many were.
func (c *console) amend(r *http.Request, w *office.AmendRequest, what string) (string, error) {
	ids, err := chosen(r)
	switch w.Reason = reason(r); {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", nixie.Errorf(nixie.CodeInvalid, "no message is selected: select some, then choose what becomes of them")
	case w.Reason == "":
		return "", nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, it is recorded")
	}
	done, refused := int64(0), ""
	err = c.office.Amend(r.Context(), ids, w, func(v office.AmendView) error {
		if v.Error == "" {
			done++
		} else if refused == "" {
			refused = v.Error
		}
		return nil
	})
	if err == nil && refused != "" {
		err = nixie.Errorf(nixie.CodeConflict, "%d of %s changed; the first of the others: %s", done, plural(len(ids), "message"), refused)
	}
	return c.done("retries", what, done, "message", "queue", r.FormValue("queue")), err
}
