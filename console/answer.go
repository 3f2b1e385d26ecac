package console

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// answerLimit bounds the time of the store for one page.
const answerLimit = 10 * time.Second

// frame has the page, and all that the template base shows around it.
type frame struct {
	answer
	*console
	Name string // of what the console shows
	At   string // the path of the page, without the prefix
	Told string // what a verb did that led here
	Live bool   // the page is kept up to date
	Time time.Time
}

// answer shows a page.
func (c *console) answer(w http.ResponseWriter, r *http.Request, p page, shown, trouble *template.Template) {
	ctx, cancel := context.WithTimeout(r.Context(), answerLimit)
	defer cancel()
	r = r.WithContext(ctx)
	if p.live && r.Header.Get(liveHeader) != "" {
		c.watch(w, r, p, shown, trouble)
		return
	}
	a, err := p.show(c, r)
	switch {
	case err != nil:
		c.fail(w, r, trouble, err)
		return
	case a.To != "":
		http.Redirect(w, r, a.To, http.StatusSeeOther)
		return
	case shown == nil:
		c.download(w, a)
		return
	}
	body, err := c.render(r, p, shown, a)
	if err != nil {
		c.fail(w, r, trouble, err)
		return
	}
	send(w, http.StatusOK, body)
}

// act does a verb and leads the browser to the page that shows the outcome.
func (c *console) act(w http.ResponseWriter, r *http.Request, do verb, trouble *template.Template) {
	ctx, cancel := context.WithTimeout(r.Context(), answerLimit)
	defer cancel()
	to, err := do(c, r.WithContext(ctx))
	if err != nil {
		c.fail(w, r, trouble, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// failure is shown by the page of errors.
type failure struct {
	Status     int
	What       string
	Text       string
	Candidates []office.Candidate
}

// fail shows an error. When the store is away, the page asks again by itself.
func (c *console) fail(w http.ResponseWriter, r *http.Request, trouble *template.Template, err error) {
	f := failure{http.StatusInternalServerError, "This is a defect, or damaged data", c.Mask.Text(err.Error()), nil}
	refresh := 0
	switch nixie.CodeOf(err) {
	case nixie.CodeNotFound:
		f.Status, f.What = http.StatusNotFound, "Not found"
	case nixie.CodeInvalid, nixie.CodeLimit:
		f.Status, f.What = http.StatusBadRequest, "That cannot be asked"
	case nixie.CodeConflict, nixie.CodeLeaseLost, nixie.CodeOutcomeUnknown:
		f.Status, f.What = http.StatusConflict, "That cannot be done now"
	case nixie.CodeDenied:
		f.Status, f.What = http.StatusForbidden, "Not allowed"
	case nixie.CodeUnavailable:
		f.Status, f.What, refresh = http.StatusServiceUnavailable, "The store does not answer", 3
	case nixie.CodeInternal:
		if r.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			f.Status, f.What = http.StatusServiceUnavailable, "The answer took too long"
		}
	}
	if many := (*office.AmbiguousError)(nil); errors.As(err, &many) {
		f.What, f.Candidates = "More than one has this key", many.Candidates
	}
	if r.Method != http.MethodGet {
		refresh = 0
	}
	body, err := c.render(r, page{}, trouble, answer{Title: f.What, Refresh: refresh, Data: f})
	if err != nil {
		http.Error(w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, f.Status, body)
}

// render makes a page whole before anything of it is sent, so that half a page is never seen.
func (c *console) render(r *http.Request, p page, t *template.Template, a answer) (*bytes.Buffer, error) {
	if a.Title == "" {
		a.Title = p.title
	}
	var body bytes.Buffer
	f := frame{a, c, c.Title, strings.TrimPrefix(r.URL.Path, c.Prefix), outcome(r), p.live, c.Clock()}
	return &body, t.ExecuteTemplate(&body, "base.html", f)
}

func send(w http.ResponseWriter, status int, body *bytes.Buffer) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the client may be gone
}

// download sends bytes as a file, so that no browser shows what they hold.
func (c *console) download(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+a.Title+`"`)
	body, _ := a.Data.([]byte)
	_, _ = w.Write(body) // the client may be gone
}
