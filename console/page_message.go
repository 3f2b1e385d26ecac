package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
)

func messagePage() page {
	return page{path: "message/{id}", title: "Message", file: "message", live: true, show: (*console).showMessage, verbs: map[string]verb{
		"now": (*console).retryOne, "cancel": (*console).cancelOne, "hold": (*console).holdOne, "reset": (*console).resetOne,
		"reschedule": (*console).rescheduleOne, "move": (*console).moveOne, "pass": (*console).passOne,
	}}
}

// messageData is one message with all that is known of it.
type messageData struct {
	office.MessageView
	HistoryDropped int
	Attempts       []office.FailureView // newest first
	Body           body
	Events         []office.LogEntry
	Stream         *office.StreamView // nil: it is in no ordered stream
	Acts           []act
}

func (c *console) showMessage(r *http.Request) (answer, error) {
	ctx := r.Context()
	m, events, err := c.office.Log(ctx, r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	c.maskParts(&m.Message, m.History)
	d := messageData{MessageView: office.ViewMessage(&m.Message), HistoryDropped: m.HistoryDropped, Events: events}
	d.Damage, d.Headers = m.Damage, m.Headers
	d.Attempts = office.ViewHistory(m.History)
	slices.Reverse(d.Attempts)
	d.Body = c.payload(m.Body, r.FormValue("as"))
	d.Body.Of = "message/" + d.ID.String()
	if d.Stream, err = c.stream(ctx, &m.Message); err != nil {
		return answer{}, err
	}
	settings, err := c.office.QueueSettings(ctx, m.Queue)
	d.Acts = c.messageActs(&m.Message, d.Stream != nil && settings.Order == nixie.OrderStrict)
	return answer{Title: line(firstOf(d.Key, d.ID.String())), Data: d}, err
}

func messageBodyPage() page {
	return page{path: "message/{id}/body", show: (*console).showMessageBody}
}

// showMessageBody answers with the body of a message as it is.
func (c *console) showMessageBody(r *http.Request) (answer, error) {
	m, err := c.office.Message(r.Context(), r.PathValue("id"))
	return answer{Title: m.ID.String() + ".bin", Data: m.Body}, err
}

// messageActs returns what can be done with a message.
func (c *console) messageActs(m *nixie.Message, strict bool) []act {
	to := func(verb string) string { return c.link("message/" + m.ID.String() + "/" + verb) }
	var acts []act
	if m.State == nixie.Queued {
		if m.NotBefore.After(c.Clock()) {
			acts = append(acts, act{To: to("now"), Name: "Retry now", Text: "It is due at once, before the others that wait for later."})
		}
		acts = append(acts, act{To: to("reschedule"), Name: "Reschedule", Text: "It is due at another time.",
			Field: &field{"when", "When", "90m, 2d or 2026-05-05T06:00:00Z"}},
			act{To: to("move"), Name: "Move", Text: "It goes to the end of another queue, whose settings apply from then on.",
				Field: &field{"to", "Queue", ""}})
		if m.Attempts+m.Deliveries+m.Crashes > 0 {
			acts = append(acts, act{To: to("reset"), Name: "Reset attempts", Text: "It has all of its attempts again."})
		}
		if strict && !m.MayPass {
			acts = append(acts, act{To: to("pass"), Name: "Let it pass",
				Text: "It may go before the others of its stream, out of order."})
		}
		acts = append(acts, act{To: to("hold"), Name: "Hold", Text: "It becomes a letter, which a person looks at before it is redriven."})
	}
	switch m.State {
	case nixie.Queued:
		acts = append(acts, act{To: to("cancel"), Name: "Cancel", Tone: "bad",
			Text: "It ends without another attempt and without a letter."})
	case nixie.Leased:
		acts = append(acts, act{To: to("cancel"), Name: "Cancel", Tone: "bad",
			Text: "It ends at once: what its worker answers later is not taken."})
	default: // it has ended
	}
	return acts
}

// amendOne changes the message of a page.
func (c *console) amendOne(r *http.Request, w *office.AmendRequest, what string) (string, error) {
	id, err := nixie.ParseID(r.PathValue("id"))
	if err != nil {
		return "", nixie.Errorf(nixie.CodeNotFound, "%q is no ID of a message", r.PathValue("id"))
	}
	if _, err := c.amendAll(r, []nixie.ID{id}, w); err != nil {
		return "", err
	}
	return c.done("message/"+id.String(), what, 1, "message"), nil
}

func (c *console) retryOne(r *http.Request) (string, error) {
	return c.amendOne(r, &office.AmendRequest{Verb: office.RetryNow}, "retried")
}

func (c *console) cancelOne(r *http.Request) (string, error) {
	return c.amendOne(r, &office.AmendRequest{Verb: office.Cancel}, "canceled")
}

func (c *console) holdOne(r *http.Request) (string, error) {
	return c.amendOne(r, &office.AmendRequest{Verb: office.HoldMessage}, "held")
}

func (c *console) resetOne(r *http.Request) (string, error) {
	return c.amendOne(r, &office.AmendRequest{Verb: office.ResetAttempts}, "reset")
}

func (c *console) passOne(r *http.Request) (string, error) {
	return c.amendOne(r, &office.AmendRequest{Verb: office.MayPass}, "mayPass")
}

// rescheduleOne reads after how long, or when.
func (c *console) rescheduleOne(r *http.Request) (string, error) {
	text, now := strings.TrimSpace(r.FormValue("when")), c.Clock()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		in, wrong := filter.ParseDuration(text)
		if err = wrong; err == nil {
			at = now.Add(in)
		}
	}
	if err != nil || at.Sub(now) > nixie.MaxDelay {
		return "", nixie.Errorf(nixie.CodeInvalid,
			"when is %.40q: give a time from now such as 90m or 2d, or a moment such as 2026-05-05T06:00:00Z, at most %s from now", text,
			lasted(nixie.MaxDelay))
	}
	return c.amendOne(r, &office.AmendRequest{Verb: office.Reschedule, At: at}, "rescheduled")
}

func (c *console) moveOne(r *http.Request) (string, error) {
	return c.amendOne(r, &office.AmendRequest{Verb: office.Move, Queue: strings.TrimSpace(r.FormValue("to"))}, "requeued")
}
