package console

import (
	"context"
	"net/http"
	"time"

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
	Left   int64  // letters of it that wait for an operator
	More   bool   // letters of its filter wait for a redrive
	Going  bool   // this console runs it
	Ended  string // why it ended before its end
}

// Kept reports whether a dry run kept the selection and nothing has moved yet.
func (d *operationData) Kept() bool { return d.Guarded && d.Pending == d.Selected }

// Took returns how long it took.
func (d *operationData) Took() string { return tookText(&d.OperationView) }

// tookText returns how long an operation took, "" while it has not ended.
func tookText(v *office.OperationView) string {
	if v.EndedAt.IsZero() {
		return ""
	}
	if took := v.EndedAt.Sub(v.CreatedAt.Time); took >= time.Minute {
		return lasted(took)
	}
	return v.EndedAt.Sub(v.CreatedAt.Time).Round(100 * time.Millisecond).String()
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
	if !d.Going && d.Outcome != nil {
		if err := c.addOffers(r.Context(), &d); err != nil {
			return answer{}, err
		}
	}
	a := answer{Data: &d}
	if d.Going || d.Outcome != nil && d.Outcome.UnderWay > 0 {
		a.Refresh = operationRefresh
	}
	return a, nil
}

// addOffers counts what can still be done with the letters of a redrive that does not run.
func (c *console) addOffers(ctx context.Context, d *operationData) error {
	causes, _, err := c.causes(ctx, waiting(nixie.Filter{Operation: d.Operation}))
	for _, n := range causes {
		d.Left += n.Count
	}
	if err != nil || d.OperationView.Filter == "" {
		return err
	}
	f, err := office.ParseFilter(d.OperationView.Filter, c.Clock())
	if err == nil {
		f, _, err = c.office.Resolve(ctx, f)
	}
	if err != nil {
		return nil // it was written for an earlier version: nothing is offered
	}
	causes, _, err = c.causes(ctx, waiting(f))
	d.More = len(causes) > 0
	return err
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
