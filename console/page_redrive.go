package console

import (
	"net/http"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

func redrivePage() page {
	return page{path: "redrive", title: "Redrive", file: "redrive", show: (*console).showRedrive,
		verbs: map[string]verb{"run": (*console).runRedrive}}
}

// redriveData is a redrive before it begins: what is selected, and what would become of it.
type redriveData struct {
	selection
	Rate  string
	Force bool
}

// redrive reads what a form asks for. The request is nil when the filter has a fault.
func (c *console) redrive(r *http.Request) (*redriveData, *office.OperationRequest, error) {
	w := &office.OperationRequest{Event: office.OnRedrive, Force: r.FormValue("force") != ""}
	d := &redriveData{Rate: r.FormValue("rate"), Force: w.Force}
	var err error
	if d.selection, w, err = c.selection(r, w); err != nil || w == nil {
		return d, nil, err
	}
	w.Rate, err = perSecond(d.Rate)
	return d, w, err
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
	return answer{Data: d}, c.preview(r.Context(), &d.selection, w)
}

func (c *console) runRedrive(r *http.Request) (string, error) {
	d, w, err := c.redrive(r)
	if err != nil {
		return "", err
	}
	return c.begin(r.Context(), &d.selection, w)
}
