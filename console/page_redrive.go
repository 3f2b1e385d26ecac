package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// maxPreview limits the letters that a preview reads one by one. More are counted by their causes.
const maxPreview = 2_000

func redrivePage() page {
	return page{path: "redrive", title: "Redrive", file: "redrive", show: (*console).showRedrive,
		verbs: map[string]verb{"run": (*console).runRedrive}}
}

// redriveData is a redrive before it begins: what is selected, and what would become of it.
type redriveData struct {
	search
	IDs       []string
	Max, Rate string
	Force     bool
	Shown     string // the moment of the preview: letters that die later are not in the selection
	Count     int64  // letters that are selected
	Groups    []office.GroupView
	More      int          // groups that are not among them
	Plan      *office.Plan // nil: too many letters to read each
	Coverage  *office.Coverage
}

// Goes returns the number of letters that the operation would select.
func (d *redriveData) Goes() int64 {
	if d.Plan != nil {
		return d.Plan.Movable
	}
	if most, _ := strconv.ParseInt(d.Max, 10, 64); most > 0 {
		return min(most, d.Count)
	}
	return d.Count
}

// redrive reads what a form asks for. The request is nil when the filter has a fault.
func (c *console) redrive(r *http.Request) (*redriveData, *office.OperationRequest, error) {
	if err := r.ParseForm(); err != nil {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid, "the form cannot be read: %w", err)
	}
	d := &redriveData{
		search: c.search(r), IDs: r.Form["id"], Max: r.FormValue("max"), Rate: r.FormValue("rate"), Force: r.FormValue("force") != "",
		Shown: r.FormValue("shown"),
	}
	if d.Fault != nil {
		return d, nil, nil
	}
	w := &office.OperationRequest{
		Event: office.OnRedrive, Filter: d.filter, Text: d.Filter, Force: d.Force, Reason: strings.TrimSpace(r.FormValue("reason")),
	}
	for _, text := range d.IDs {
		id, err := nixie.ParseID(text)
		if err != nil {
			return nil, nil, err
		}
		w.IDs = append(w.IDs, id)
	}
	var err error
	if d.Max != "" {
		if w.Max, err = strconv.Atoi(d.Max); err != nil || w.Max < 0 {
			return nil, nil, nixie.Errorf(nixie.CodeInvalid, "the most letters are %q: give a positive number, or nothing for all", d.Max)
		}
	}
	if w.Rate, err = perSecond(d.Rate); err != nil {
		return nil, nil, err
	}
	if d.Shown == "" {
		d.Shown = c.Clock().UTC().Format(time.RFC3339Nano)
	}
	shown, err := time.Parse(time.RFC3339Nano, d.Shown)
	if err != nil {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid, "the time of the preview is %q: open the page again", d.Shown)
	}
	if before := &w.Filter.Died.Before; len(w.IDs) == 0 && (before.IsZero() || shown.Before(*before)) {
		*before = shown
	}
	return d, w, nil
}

// perSecond reads a rate; nothing is no limit.
func perSecond(text string) (rate float64, err error) {
	if text == "" {
		return 0, nil
	}
	if rate, err = strconv.ParseFloat(text, 64); err != nil {
		return 0, nixie.Errorf(nixie.CodeInvalid, "the rate is %q: give letters per second, or nothing for no limit", text)
	}
	return rate, nil
}

func (c *console) showRedrive(r *http.Request) (answer, error) {
	d, w, err := c.redrive(r)
	if err != nil || w == nil {
		return answer{Data: d}, err
	}
	ctx := r.Context()
	groups, coverage, err := c.office.Groups(ctx, w.EffectiveFilter())
	if err != nil {
		return answer{}, err
	}
	for _, g := range groups {
		d.Count += g.Count
	}
	d.Coverage, d.More = coverage, max(0, len(groups)-maxAlerts)
	d.Groups = groups[:len(groups)-d.More]
	if d.Count <= maxPreview && coverage == nil {
		plan, err := c.office.Preview(ctx, w)
		if err != nil {
			return answer{}, err
		}
		d.Plan = &plan
	}
	return answer{Data: d}, nil
}

// runRedrive freezes the selection that was shown, and begins to move it.
func (c *console) runRedrive(r *http.Request) (string, error) {
	d, w, err := c.redrive(r)
	switch {
	case err != nil:
		return "", err
	case w == nil:
		return "", nixie.Errorf(nixie.CodeInvalid, "the filter cannot be read: %s", d.Fault.Message)
	}
	op, err := c.office.Begin(r.Context(), w)
	if err != nil {
		return "", err
	}
	return c.start(op.Operation, w), nil
}
