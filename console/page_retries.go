package console

import (
	"net/http"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// retriesShown is the number of messages on the page, those that are due next.
const retriesShown = 100

func retriesPage() page {
	return page{path: "retries", title: "Retries", menu: "retries", file: "retries", live: true, show: (*console).showRetries,
		verbs: amendments()}
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

// amendments are the verbs on messages that are selected in a list.
func amendments() map[string]verb {
	return map[string]verb{"now": (*console).retryNow, "cancel": (*console).cancelSelected, "hold": (*console).holdSelected}
}

// retryNow makes the selected messages due.
func (c *console) retryNow(r *http.Request) (string, error) {
	return c.amend(r, &office.AmendRequest{Verb: office.RetryNow}, "retried")
}

// cancelSelected ends the selected messages, without a letter.
func (c *console) cancelSelected(r *http.Request) (string, error) {
	return c.amend(r, &office.AmendRequest{Verb: office.Cancel}, "canceled")
}

// holdSelected buries the selected messages, so that a person looks at them.
func (c *console) holdSelected(r *http.Request) (string, error) {
	return c.amend(r, &office.AmendRequest{Verb: office.HoldMessage}, "held")
}

// amend changes the selected messages, and leads back to the page that listed them.
func (c *console) amend(r *http.Request, w *office.AmendRequest, what string) (string, error) {
	ids, err := chosen(r)
	if err == nil && len(ids) == 0 {
		err = nixie.Errorf(nixie.CodeInvalid, "no message is selected: select some, then choose what becomes of them")
	}
	if err != nil {
		return "", err
	}
	done, err := c.amendAll(r, ids, w)
	back, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, c.Prefix), "/")
	return c.done(back, what, done, "message", "queue", r.FormValue("queue"), "stage", r.FormValue("stage"),
		"filter", r.FormValue("filter")), err
}

// amendAll changes messages, and returns how many. If one cannot be changed, the error says which
// and why, and how many were.
func (c *console) amendAll(r *http.Request, ids []nixie.ID, w *office.AmendRequest) (done int64, err error) {
	if w.Reason = reason(r); w.Reason == "" {
		return 0, nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, it is recorded")
	}
	refused := ""
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
	return done, err
}
