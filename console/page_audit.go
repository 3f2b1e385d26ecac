package console

import (
	"net/http"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of one page of the audit.
const (
	auditShown = 100    // rows
	auditRead  = 10_000 // entries that they stand for
	alikeRead  = 1_000  // entries that are read at once where many are alike
)

func auditPage() page {
	return page{path: "audit", title: "Audit", menu: "audit", file: "audit", show: (*console).showAudit}
}

// auditData is one page of what people and rules did.
type auditData struct {
	auditForm
	console *console
	Fault   *fault
	Events  []office.Event // that there are
	Rows    []auditRow
	Next    string
	First   bool
}

// auditForm has the values of the form that filters the audit.
type auditForm struct{ By, Event, Since, Until, Queue, Actor string }

// Values of By.
const (
	byPeople = "people"
	byRules  = "rules"
	byAll    = "people and rules"
)

// Choices are the values of By.
func (f auditForm) Choices() []string { return []string{byPeople, byRules, byAll} }

// auditRow stands for entries that differ only in their letters, newest first.
type auditRow struct {
	office.AuditView
	Times int64
}

func (c *console) showAudit(r *http.Request) (answer, error) {
	d := auditData{console: c, Events: office.Events(), First: r.FormValue("cursor") == "", auditForm: auditForm{
		By: r.FormValue("by"), Event: r.FormValue("event"), Since: r.FormValue("since"), Until: r.FormValue("until"),
		Queue: r.FormValue("queue"), Actor: r.FormValue("actor"),
	}}
	if !slices.Contains(d.Choices(), d.By) {
		d.By = byPeople
	}
	f, err := d.filter(c)
	if err != nil {
		d.Fault = &fault{Message: err.Error()}
		return answer{Data: d}, nil
	}
	page := office.Page{Limit: auditShown, Cursor: r.FormValue("cursor")}
	for read := 0; len(d.Rows) < auditShown && read < auditRead; {
		list, next, err := c.office.Audit(r.Context(), f, page)
		if err != nil {
			return answer{}, err
		}
		before := len(d.Rows)
		for i := range list {
			d.add(office.ViewAudit(&list[i]))
		}
		if page.Limit = auditShown; len(d.Rows)-before <= 1 {
			page.Limit = alikeRead
		}
		read, d.Next, page.Cursor = read+len(list), next, next
		if next == "" {
			break
		}
	}
	return answer{Data: d}, nil
}

// filter reads the form.
func (f *auditForm) filter(c *console) (a office.AuditFilter, err error) {
	switch a.Actor = f.Actor; {
	case f.Actor != "": // a rule or not
	case f.By == byPeople:
		a.People = true
	case f.By == byRules:
		a.Actor = office.System
	}
	if f.Queue != "" {
		a.Queues = []string{f.Queue}
	}
	if f.Event != "" {
		if !slices.Contains(office.Events(), office.Event(f.Event)) {
			return a, nixie.Errorf(nixie.CodeInvalid, "what is %q: choose one of the list", f.Event)
		}
		a.Events = []office.Event{office.Event(f.Event)}
	}
	if a.Since, err = office.ParseMoment(f.Since, c.Clock()); err != nil {
		return a, nixie.Errorf(nixie.CodeInvalid, "since is %w", err)
	}
	if a.Until, err = office.ParseMoment(f.Until, c.Clock()); err != nil {
		return a, nixie.Errorf(nixie.CodeInvalid, "until is %w", err)
	}
	return a, nil
}

// add adds an entry. What was done alike to several letters of a queue is one row.
func (d *auditData) add(e office.AuditView) {
	if n := len(d.Rows); n > 0 {
		last := &d.Rows[n-1]
		if last.Actor == e.Actor && last.Event == e.Event && last.Queue == e.Queue && last.Reason == e.Reason &&
			last.Operation == e.Operation && last.Number-last.Times == e.Number {
			last.Times++
			return
		}
	}
	d.Rows = append(d.Rows, auditRow{e, 1})
}

// At returns the address of this audit from a cursor on.
func (d auditData) At(cursor string) string { return d.With("by", d.By, cursor) }

// With returns the address of this audit with another value of its form.
func (d auditData) With(key, value, cursor string) string {
	values := map[string]string{"by": d.By, "event": d.Event, "since": d.Since, "until": d.Until, "queue": d.Queue, "actor": d.Actor}
	values[key] = value
	if values["by"] == byPeople {
		values["by"] = "" // as without
	}
	pairs := []any{"cursor", cursor}
	for key, value := range values {
		pairs = append(pairs, key, value)
	}
	return d.console.link("audit", pairs...)
}
