package console

import (
	"net/http"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// operationRefresh is the time between two looks at an operation that moves, in seconds.
const operationRefresh = 2

// operationsShown is the number of operations on one page.
const operationsShown = 50

func operationsPage() page {
	return page{path: "operations", title: "Operations", menu: "operations", file: "operations", live: true,
		show: (*console).showOperations}
}

// operationsData is one page of the operations, newest first.
type operationsData struct {
	Operations []office.OperationView
	Next       string
	First      bool
}

func (c *console) showOperations(r *http.Request) (answer, error) {
	cursor := r.FormValue("cursor")
	list, next, err := c.office.Operations(r.Context(), office.Page{Limit: operationsShown, Cursor: cursor})
	d := operationsData{Next: next, First: cursor == ""}
	for i := range list {
		d.Operations = append(d.Operations, office.ViewOperation(&list[i]))
	}
	return answer{Data: d}, err
}

func operationPage() page {
	return page{path: "operation/{id}", title: "Operation", file: "operation", live: true, show: (*console).showOperation,
		verbs: map[string]verb{"resume": (*console).resume, "repeat": (*console).repeat}}
}

// operationData is an operation, with the outcomes of its letters if it is a redrive.
type operationData struct {
	office.OperationView
	Bar    []part
	Filter string // selects its letters
	Again  int64  // letters that died again
	Going  bool   // this console runs it
	Ended  string // why it ended before its end
}

// part is a part of a whole, in thousandths.
type part struct {
	Tone, Name string
	At, Width  int64
	Count      int64
}

func (c *console) showOperation(r *http.Request) (answer, error) {
	id, err := nixie.ParseID(r.PathValue("id"))
	if err != nil {
		return answer{}, nixie.Errorf(nixie.CodeNotFound, "%q is no ID of an operation", r.PathValue("id"))
	}
	d := operationData{Filter: term("operation", id.String())}
	op, err := c.office.Operation(r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	d.OperationView = office.ViewOperation(&op)
	if o := d.Outcome; o != nil {
		d.Again = o.DiedAgain()
		d.add("good", "succeeded", o.Succeeded)
		d.add("bad", "died again", d.Again)
		d.add("soft", "gone", o.Gone)
		d.add("", "unobserved", o.Unobserved)
		d.add("wait", "under way", o.UnderWay)
	} else {
		d.add("", "done", d.Done)
	}
	d.add("soft", "skipped", d.Skipped)
	d.add("bad", "failed", d.Failed)
	d.add("none", "to go", d.Pending)
	state := c.runs.of(id)
	d.Going, d.Ended = state.going, state.ended
	a := answer{Data: d}
	if d.Going || d.Outcome != nil && d.Outcome.UnderWay > 0 {
		a.Refresh = operationRefresh
	}
	return a, nil
}

// add adds a part to the bar.
func (d *operationData) add(tone, name string, n int64) {
	at := int64(0)
	for _, p := range d.Bar {
		at = max(at, p.At+p.Width)
	}
	if n > 0 {
		d.Bar = append(d.Bar, part{tone, name, at, max(1, 1000*n/max(d.Selected, 1)), n})
	}
}
