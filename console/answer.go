package console

import (
	"bytes"
	"cmp"
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

// A client that does not take an answer in this time loses its connection.
const (
	pageLimit     = 30 * time.Second
	downloadLimit = 5 * time.Minute
)

// frame has the page, and all that the template base shows around it.
type frame struct {
	answer
	*console
	Name string // of what the console shows
	At   string // the path of the page, without the prefix
	Told string // what a verb did that led here
	Live bool   // the page is kept up to date
	Time time.Time
	Took int64 // milliseconds from the first question to the store until Time
}

// answer shows a page.
func (c *console) answer(w http.ResponseWriter, r *http.Request, p page, shown, trouble *template.Template) {
	if p.live && r.Header.Get(liveHeader) != "" {
		c.watch(w, r, p, shown, trouble)
		return
	}
	a, body, err := c.compose(r, p, shown)
	switch {
	case err != nil:
		c.fail(w, r, trouble, err)
	case a.To != "":
		http.Redirect(w, r, a.To, http.StatusSeeOther)
	case shown == nil:
		c.download(w, a)
	default:
		send(w, cmp.Or(a.Status, http.StatusOK), body)
	}
}

// compose makes a page for a person, who waits for others if it is a search.
func (c *console) compose(r *http.Request, p page, shown *template.Template) (answer, *bytes.Buffer, error) {
	if !c.isSearch(r) {
		return c.composeNow(r, p, shown, 0)
	}
	end, waited, err := c.searches.ofPerson(r.Context())
	if err != nil {
		return answer{}, nil, err
	}
	defer end()
	return c.composeNow(r, p, shown, waited)
}

// composeNow asks the store for a page and renders it, unless it is a file or at another address.
func (c *console) composeNow(r *http.Request, p page, shown *template.Template, waited time.Duration) (answer, *bytes.Buffer, error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerLimit)
	defer cancel()
	r = r.WithContext(ctx)
	began := c.Clock()
	a, err := p.show(c, r)
	if err != nil || a.To != "" || shown == nil {
		return a, nil, err
	}
	if waited > searchTold {
		a.Waited = lasted(waited)
	}
	body, err := c.render(r, p, shown, a, c.Clock().Sub(began))
	return a, body, err
}

// act does a verb and leads the browser to the page that shows the outcome.
func (c *console) act(w http.ResponseWriter, r *http.Request, do verb, trouble *template.Template) {
	ctx, cancel := context.WithTimeout(r.Context(), answerLimit)
	defer cancel()
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
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
	Of         string // the page of a candidate: letter or message
}

// fail shows an error. When the store is away, the page asks again by itself.
func (c *console) fail(w http.ResponseWriter, r *http.Request, trouble *template.Template, err error) {
	f := failure{http.StatusInternalServerError, "This is a defect, or damaged data", c.Mask.Text(err.Error()), nil, "letter"}
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
	if busy := (*busyError)(nil); errors.As(err, &busy) {
		f.Status, f.What, refresh = http.StatusServiceUnavailable, "One search runs at a time", 3
	}
	if many := (*office.AmbiguousError)(nil); errors.As(err, &many) {
		f.What, f.Candidates = "More than one has this key", many.Candidates
		if strings.HasPrefix(strings.TrimPrefix(r.URL.Path, c.Prefix), "message") {
			f.Of = "message"
		}
	}
	if r.Method != http.MethodGet {
		refresh = 0
	}
	body, err := c.render(r, page{}, trouble, answer{Title: f.What, Refresh: refresh, Data: f}, 0)
	if err != nil {
		http.Error(w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, f.Status, body)
}

// render makes a page whole before anything of it is sent, so that half a page is never seen.
func (c *console) render(r *http.Request, p page, t *template.Template, a answer, took time.Duration) (*bytes.Buffer, error) {
	if a.Title == "" {
		a.Title = p.title
	}
	var body bytes.Buffer
	f := frame{a, c, c.Title, strings.TrimPrefix(r.URL.Path, c.Prefix), outcome(r), p.live, c.Clock(), took.Milliseconds()}
	return &body, t.ExecuteTemplate(&body, "base.html", f)
}

func send(w http.ResponseWriter, status int, body *bytes.Buffer) {
	bound(w, pageLimit)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the client may be gone
}

// download sends bytes as a file, so that no browser shows what they hold.
func (c *console) download(w http.ResponseWriter, a answer) {
	bound(w, downloadLimit)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+a.Title+`"`)
	body, _ := a.Data.([]byte)
	_, _ = w.Write(body) // the client may be gone
}

// bound limits the time in which a client takes an answer.
func bound(w http.ResponseWriter, limit time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // not every writer has a connection
}
