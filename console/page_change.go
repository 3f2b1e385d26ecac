package console

import (
	"net/http"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

func changePage() page {
	return page{path: "change", title: "Change letters", file: "change", show: (*console).showChange,
		verbs: map[string]verb{"run": (*console).runChange}}
}

// change has the words of a verb on letters, other than a redrive.
type change struct {
	Event office.Event
	Name  string // of the verb, as on a button
	Text  string // what it does
	Why   string // the label of the reason
	Tone  string // bad: the letters wait no more
}

const whyAudit = "Reason, for the audit"

// changes are offered in this order.
var changes = []change{
	{office.OnDiscard, "Discard", "gives letters up. They can be restored until their queue's retention removes them", whyAudit, "bad"},
	{office.OnHold, "Hold", "sets letters aside: a person looks at them before they are redriven", whyAudit, ""},
	{office.OnUnhold, "Unhold", "ends the review of letters: they may be redriven without force", whyAudit, ""},
	{office.OnRequalify, "Requalify", "lets letters be redriven again that were redriven too often", whyAudit, ""},
	{office.OnRestore, "Restore", "brings discarded letters back", whyAudit, ""},
	{office.OnNote, "Note on", "adds a note to letters, and moves none", "Note", ""},
}

// changesOf returns what can be done to letters of a status.
func changesOf(status nixie.Status) []change {
	var list []change
	for _, ch := range changes {
		if office.May(status, ch.Event) {
			list = append(list, ch)
		}
	}
	return list
}

// changeData is a change before it begins.
type changeData struct {
	selection
	Change change
}

// changed reads what a form asks for. The request is nil when the filter has a fault.
func (c *console) changed(r *http.Request) (*changeData, *office.OperationRequest, error) {
	d := &changeData{}
	for _, ch := range changes {
		if string(ch.Event) == r.FormValue("verb") {
			d.Change = ch
		}
	}
	if d.Change.Event == "" {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid, "letters cannot be changed by %q: choose one of the verbs on the page of a letter",
			r.FormValue("verb"))
	}
	w := &office.OperationRequest{Event: d.Change.Event, Reviewed: d.Change.Event == office.OnUnhold}
	var err error
	d.selection, w, err = c.selection(r, w)
	return d, w, err
}

func (c *console) showChange(r *http.Request) (answer, error) {
	d, w, err := c.changed(r)
	switch {
	case err != nil:
		return answer{}, err
	case w == nil:
		return answer{Title: d.Change.Name + " letters", Data: d}, nil
	}
	return answer{Title: d.Change.Name + " letters", Data: d}, c.preview(r.Context(), &d.selection, w)
}

func (c *console) runChange(r *http.Request) (string, error) {
	d, w, err := c.changed(r)
	switch {
	case err != nil:
		return "", err
	case w != nil && w.Reason == "":
		return "", nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, it is recorded")
	}
	return c.begin(r.Context(), &d.selection, w)
}
