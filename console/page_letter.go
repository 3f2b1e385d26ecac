package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of the page of a letter.
const (
	maxPayload      = 64 << 10 // bytes of a body that it shows; the download has all
	maxHex          = 4 << 10  // bytes of an attachment in hex
	neighboursShown = 5        // messages of its stream
)

func letterPage() page {
	return page{path: "letter/{id}", title: "Letter", file: "letter", show: (*console).showLetter}
}

// letterData is one letter with all that is known of it.
type letterData struct {
	office.LetterDetail
	Story    []step
	Attempts []office.FailureView // newest first
	A, B     int                  // numbers of the attempts that are compared, from 1; 0 is none
	Compared []comparison
	Body     body
	Events   []office.LogEntry
	Filter   string
	Stream   *office.StreamView   // nil: it is in no ordered stream
	Behind   []office.MessageView // newest messages of the stream
	Changes  []change
	Stays    string // why it cannot be redriven; "" if it can, or is in another status
}

// step is a part of the story of a letter: what happened, how often in a row, and when first.
type step struct {
	What  string
	Times int
	At    office.Timestamp
}

// comparison is a property of two attempts.
type comparison struct{ Name, A, B string }

// Differs reports whether the two attempts differ in it.
func (c comparison) Differs() bool { return c.A != c.B }

// body is the payload as it is shown.
type body struct {
	Of   string // the path of what has it
	Size int
	As   string
	Tree node
	Text string
	Cut  bool
}

func (c *console) showLetter(r *http.Request) (answer, error) {
	ctx := r.Context()
	l, err := c.office.Letter(ctx, r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	c.maskParts(&l.Message, l.History)
	d := letterData{LetterDetail: office.ViewLetterDetail(&l), Changes: changesOf(l.Status)}
	if office.May(l.Status, office.OnRedrive) {
		d.Stays = c.office.NoRedrive(&l)
	}
	d.Body = c.payload(l.Message.Body, r.FormValue("as"))
	d.Body.Of = "letter/" + l.ID.String()
	d.Filter = term("fingerprint", d.Fingerprint)
	if _, d.Events, err = c.office.Log(ctx, l.Message.ID.String()); err != nil {
		return answer{}, err
	}
	if d.Stream, err = c.stream(ctx, &l.Message); err != nil {
		return answer{}, err
	}
	if d.Stream != nil {
		records, err := c.office.Followers(ctx, l.Message.Queue, l.Message.Stream, neighboursShown)
		if err != nil {
			return answer{}, err
		}
		for i := range records {
			d.Behind = append(d.Behind, office.ViewMessage(&records[i].Message))
		}
	}
	for _, e := range d.Events {
		if n := len(d.Story); n > 0 && d.Story[n-1].What == e.What {
			d.Story[n-1].Times++
			continue
		}
		d.Story = append(d.Story, step{e.What, 1, e.At})
	}
	d.A, d.B = pick(r, "a", len(d.History)), pick(r, "b", len(d.History))
	if d.A > 0 && d.B > 0 {
		d.Compared = compare(&d.History[d.A-1], &d.History[d.B-1])
	}
	if d.A == 0 && d.B == 0 {
		d.A, d.B = 1, len(d.History) // the form offers the first and the last
	}
	d.Attempts = slices.Clone(d.History)
	slices.Reverse(d.Attempts)
	return answer{Title: line(firstOf(d.Key, d.ID.String())), Data: d}, nil
}

// stream returns the ordered stream of a message, or nil.
func (c *console) stream(ctx context.Context, m *nixie.Message) (*office.StreamView, error) {
	if m.Stream == "" {
		return nil, nil
	}
	settings, err := c.office.QueueSettings(ctx, m.Queue)
	if err != nil || !settings.Ordered() {
		return nil, err
	}
	s, err := c.office.Stream(ctx, m.Queue, m.Stream)
	if nixie.CodeOf(err) == nixie.CodeNotFound {
		return nil, nil // it has no message any more
	}
	view := office.ViewStream(&s)
	return &view, err
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// maskParts hides the secrets that a message has in its failures and, by their names, in its
// headers. The functions of templates hide those in other texts.
func (c *console) maskParts(m *nixie.Message, history []nixie.Failure) {
	for i := range history {
		c.Mask.Failure(&history[i])
	}
	m.Headers = slices.Clone(m.Headers)
	for i, h := range m.Headers {
		m.Headers[i].Value = c.Mask.Header(h.Name, h.Value)
	}
}

// pick reads the number of an attempt; 0 is none.
func pick(r *http.Request, name string, most int) int {
	n, err := strconv.Atoi(r.FormValue(name))
	if err != nil || n < 1 || n > most {
		return 0
	}
	return n
}

func compare(a, b *office.FailureView) []comparison {
	row := func(name string, of func(*office.FailureView) string) comparison {
		return comparison{name, of(a), of(b)}
	}
	return []comparison{
		row("text", func(f *office.FailureView) string { return f.Text }),
		row("reason", func(f *office.FailureView) string { return string(f.Reason) }),
		row("class", func(f *office.FailureView) string { return string(f.Class) }),
		row("type", func(f *office.FailureView) string { return f.Type }),
		row("step", func(f *office.FailureView) string { return f.Step }),
		row("worker", func(f *office.FailureView) string { return f.Worker }),
		row("node", func(f *office.FailureView) string { return f.Node }),
		row("took", func(f *office.FailureView) string { return took(f.DurationMS) }),
		row("decision", func(f *office.FailureView) string { return string(f.Decision) }),
		row("stack", func(f *office.FailureView) string { return f.Stack }),
	}
}

// payload returns a body as a tree, as JSON with indents, as its text, or in hex. Secrets are
// hidden before it becomes a tree, because a mask may know them by what is around them.
func (c *console) payload(data []byte, as string) body {
	b := body{As: as, Size: len(data)}
	shown := data[:min(len(data), maxPayload)]
	b.Cut = len(shown) < len(data)
	isText := office.IsText(data)
	if isText { // and what is left of a character that was cut is dropped
		shown = []byte(c.Mask.Text(strings.ToValidUTF8(string(shown), "")))
	}
	isJSON := isText && !b.Cut && json.Valid(shown)
	if !slices.Contains(bodyForms(), as) {
		b.As = "tree"
	}
	if b.As == "tree" {
		b.As = "json"
		if isJSON {
			if b.Tree = tree(shown); b.Tree.Kind != "" {
				b.As = "tree"
			}
		}
	}
	if b.As == "json" && (!isJSON || deep(shown)) {
		b.As = "raw"
	}
	if b.As == "raw" && !isText {
		b.As = "hex"
	}
	switch b.As {
	case "json":
		var indented bytes.Buffer
		_ = json.Indent(&indented, shown, "", "  ") // it is valid
		b.Text = indented.String()
	case "hex":
		b.Cut = b.Cut || len(shown) > maxPayload/4
		b.Text = hex.Dump(shown[:min(len(shown), maxPayload/4)])
	case "raw":
		b.Text = string(shown)
	}
	return b
}

// deep reports whether JSON has more than maxDepth levels. Indents grow with their square: those of
// 20 KB of brackets alone are 190 MB.
func deep(text []byte) bool {
	level, quoted := 0, false
	for i := 0; i < len(text) && level <= maxDepth; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			level++
		case c == ']' || c == '}':
			level--
		}
	}
	return level > maxDepth
}

// bodyForms lists the forms of a body.
func bodyForms() []string { return []string{"tree", "json", "raw", "hex"} }

// hexOf returns the beginning of an attachment that is no text, in hex.
func hexOf(a office.AttachmentView) string {
	if a.Base64 == nil {
		return ""
	}
	data, err := base64.StdEncoding.DecodeString(*a.Base64)
	if err != nil {
		return err.Error()
	}
	return hex.Dump(data[:min(len(data), maxHex)])
}

func bodyPage() page {
	return page{path: "letter/{id}/body", show: (*console).showBody}
}

// showBody answers with the body of a letter as it is.
func (c *console) showBody(r *http.Request) (answer, error) {
	l, err := c.office.Letter(r.Context(), r.PathValue("id"))
	return answer{Title: l.ID.String() + ".bin", Data: l.Message.Body}, err
}
