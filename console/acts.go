package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// act is a verb that a page offers: a form that asks for a reason.
type act struct {
	To   string // the address of the verb
	Name string // on the button; it names the number if the verb changes many
	Text string // what it does
	Tone string // bad: it cannot be undone

	Field *field // what it asks for next to a reason; nil: nothing
}

// field is a line of a form.
type field struct{ Name, Label, Hint string }

// told are the sentences by which a page says what a verb did. A number stands for %s.
var told = map[string]string{ //nolint:gosec // "passed" is no password
	"passed":    "%s of the stream may go before its head.",
	"unblocked": "The stream goes on: %s blocked it, and no longer does.",
	"retried":   "Due now: %s.",
	"canceled":  "Ended without another attempt: %s.",
	"held":      "Buried, to be reviewed: %s.",
	"paused":    "The queue is paused. Leased messages go on.",
	"resumed":   "The queue hands out messages again, and takes new ones.",
	"draining":  "The queue takes no new messages. Its workers finish those that it has.",
	"moved":     "Done with %s.",

	"rescheduled": "Due at the time that was given: %s.",
	"requeued":    "At the end of the queue that was given: %s.",
	"reset":       "All attempts again: %s.",
	"mayPass":     "May go before the others of its stream: %s.",
}

// done adds to the address of a page what a verb did, for [console.outcome].
func (c *console) done(path string, what string, n int64, noun string, pairs ...any) string {
	return c.link(path, append(pairs, "done", fmt.Sprintf("%s.%d.%s", what, n, noun))...)
}

// nouns name what verbs count.
var nouns = []string{"message", "letter"}

// outcome says what the verb did that led to a page; "" is none. An address can only choose among
// the sentences, so that no link makes a page say something else.
func outcome(r *http.Request) string {
	parts := strings.Split(r.FormValue("done"), ".")
	if len(parts) != 3 || told[parts[0]] == "" {
		return ""
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || n < 0 {
		return ""
	}
	text := told[parts[0]]
	for _, noun := range nouns {
		if noun == parts[2] && strings.Contains(text, "%s") {
			return fmt.Sprintf(text, plural(n, noun))
		}
	}
	if strings.Contains(text, "%s") {
		return ""
	}
	return text
}

// reason returns why an operator acts.
func reason(r *http.Request) string { return strings.TrimSpace(r.FormValue("reason")) }

// chosen reads the IDs that were selected on a page.
func chosen(r *http.Request) ([]nixie.ID, error) {
	if err := r.ParseForm(); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "the form cannot be read: %w", err)
	}
	var ids []nixie.ID
	for _, text := range r.Form["id"] {
		id, err := nixie.ParseID(text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
