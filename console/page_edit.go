package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of a form that edits a body.
const (
	maxEdit     = 256 << 10           // bytes of a body that has a form
	maxEditForm = 3*maxEdit + maxForm // as a form is sent, with each byte escaped
)

func editPage() page {
	return page{path: "letter/{id}/edit", title: "Edit a letter", file: "edit", show: (*console).showEdit,
		forms: map[string]form{"check": (*console).checkEdit, "run": (*console).runEdit}}
}

// editData is a body that is edited, before its letter is redriven with it.
type editData struct {
	ID       nixie.ID
	Key      string
	Queue    string
	Refusal  string // why there is no form; "" if there is one
	Fault    string // why what was sent does not do
	Text     string // in the form
	Reason   string
	Revision int64
	Asks     bool // the redrive needs force
	Force    bool
	JSON     bool
	Changes  []editedLine
	Shown    string // the sum of the text whose difference is shown; "" is none
}

func (c *console) showEdit(r *http.Request) (answer, error) {
	d, _, err := c.edited(r)
	return answer{Data: d}, err
}

// edited reads the letter of a page.
func (c *console) edited(r *http.Request) (*editData, *nixie.Letter, error) {
	l, err := c.office.Letter(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, nil, err
	}
	body := l.Message.Body
	d := &editData{ID: l.ID, Key: l.Message.Key, Queue: l.Message.Queue, Revision: l.Revision, Text: string(body),
		Asks: office.OnlyByForce(&l), JSON: json.Valid(body), Refusal: c.noForm(&l)}
	if d.Refusal != "" {
		d.Text = ""
	}
	return d, &l, nil
}

// noForm says why a letter has no form; "" is that it has one. What a form cannot hold exactly is
// not edited by one: it would be destroyed.
func (c *console) noForm(l *nixie.Letter) string {
	body := l.Message.Body
	text := string(body)
	plain := strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case !office.May(l.Status, office.OnRedrive):
		return "it is " + string(l.Status) + ": only letters that can be redriven are edited"
	case c.office.NoRedrive(l) != "":
		return "it cannot be redriven: it " + c.office.NoRedrive(l)
	case office.NoCopy(l) != "":
		return office.NoCopy(l)
	case len(l.Damage) > 0:
		return "it is damaged: " + strings.Join(l.Damage, "; ")
	case len(body) > maxEdit:
		return "its body has " + size(int64(len(body))) + ", and a form holds " + size(int64(maxEdit)) +
			" at most: use nixie dlq redrive --pipe"
	case !office.IsText(body):
		return "its body is binary: use nixie dlq redrive --pipe"
	case c.Mask.Text(text) != text:
		return "the mask of this console hides a part of its body: what is saved would have the mask's stars instead. " +
			"Use nixie dlq redrive --pipe"
	case visible(plain) != plain:
		return "its body has characters that no form shows: use nixie dlq redrive --pipe"
	case strings.Contains(text, "\r") && strings.Count(text, "\n") != strings.Count(text, "\r\n"):
		return "its lines end in several ways, which a form does not keep: use nixie dlq redrive --pipe"
	}
	return ""
}

// Rows is the height of the text in the form, in lines.
func (d *editData) Rows() int { return min(max(6, strings.Count(d.Text, "\n")+2, len(d.Text)/100), 24) }

// sent reads the form of an edit into the data of its page.
func (c *console) sent(r *http.Request) (d *editData, l *nixie.Letter, err error) {
	if d, l, err = c.edited(r); err != nil || d.Refusal != "" {
		return d, l, err
	}
	now := d.Text
	d.Text = strings.ReplaceAll(r.PostFormValue("body"), "\r\n", "\n") // a browser ends all lines with CR LF
	if strings.Contains(now, "\r\n") {
		d.Text = strings.ReplaceAll(d.Text, "\n", "\r\n")
	}
	d.Reason, d.Force = reason(r), r.PostFormValue("force") != ""
	seen, err := strconv.ParseInt(r.PostFormValue("revision"), 10, 64)
	switch {
	case err != nil:
		return d, l, nixie.Errorf(nixie.CodeInvalid, "revision is %.40q: open the page again", r.PostFormValue("revision"))
	case len(d.Text) > maxEdit:
		d.Fault = "the body has " + size(int64(len(d.Text))) + ", and a form holds " + size(int64(maxEdit)) + " at most"
	case !office.IsText([]byte(d.Text)):
		d.Fault = "the body is no text: it has a NUL, or is not UTF-8"
	case seen != d.Revision:
		d.Fault = "The letter has changed since it was read. Your text is kept; below is how it differs from what the letter says now."
	case d.JSON:
		d.Fault = jsonFault(d.Text)
	}
	if d.Text != now {
		d.Changes = difference(formed(now, d.JSON), formed(d.Text, d.JSON))
	}
	sum := sha256.Sum256([]byte(d.Text))
	d.Shown = hex.EncodeToString(sum[:])
	return d, l, nil
}

// checkEdit shows how a text differs from the body of a letter.
func (c *console) checkEdit(r *http.Request) (answer, error) {
	d, _, err := c.sent(r)
	if err != nil {
		return answer{}, err
	}
	if d.Fault == "" && d.Refusal == "" && d.Changes == nil {
		d.Fault = "Nothing differs: change the body, or redrive the letter as it is."
	}
	return c.again(d), nil
}

// again shows the form once more, with all that was written into it.
func (c *console) again(d *editData) answer {
	a := answer{Data: d}
	if d.Fault != "" {
		a.Status = http.StatusBadRequest
	}
	if d.Refusal != "" {
		a.Status = http.StatusConflict
	}
	return a
}

// runEdit redrives a letter with another body. The form is kept if that cannot be.
func (c *console) runEdit(r *http.Request) (answer, error) {
	d, l, err := c.sent(r)
	if err != nil {
		return answer{}, err
	}
	switch {
	case d.Fault != "" || d.Refusal != "":
		return c.again(d), nil
	case r.PostFormValue("shown") != d.Shown:
		d.Fault = "The text was changed after its difference was shown: look at the difference below."
	case d.Reason == "":
		d.Fault = "Reason is empty: say why, it is recorded."
	}
	if d.Fault != "" {
		return c.again(d), nil
	}
	to, err := c.repair(r.Context(), l, d)
	switch nixie.CodeOf(err) {
	case nixie.CodeConflict, nixie.CodeInvalid, nixie.CodeLimit:
		d.Fault = err.Error()
		return c.again(d), nil
	}
	return answer{To: to}, err
}

func (c *console) repair(ctx context.Context, l *nixie.Letter, d *editData) (to string, err error) {
	op, err := c.office.Repair(ctx, &office.Repair{
		Letter: l.ID, Revision: l.Revision, Body: []byte(d.Text), Reason: d.Reason, Force: d.Force,
	})
	return c.link("operation/" + op.String()), err
}

// tooLarge returns the error for a form that cannot be read.
func tooLarge(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nixie.Errorf(nixie.CodeLimit, "the form is too large: it holds a body of %s at most", size(int64(maxEdit)))
	}
	return nixie.Errorf(nixie.CodeInvalid, "the form cannot be read: %w", err)
}

// jsonFault says where a text is no JSON; "" is that it is.
func jsonFault(text string) string {
	if json.Valid([]byte(text)) {
		return ""
	}
	var read json.RawMessage
	wrong := (*json.SyntaxError)(nil)
	if err := json.Unmarshal([]byte(text), &read); errors.As(err, &wrong) {
		before := text[:min(max(int(wrong.Offset)-1, 0), len(text))]
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		return "The body was JSON and is not any more, at line " + strconv.Itoa(line) + ", character " + strconv.Itoa(column) + ": " +
			wrong.Error() + "."
	}
	return "The body was JSON and is not any more."
}

// formed writes JSON with a line for each value, numbers as they are, so that a difference names
// the values that differ. Other texts stay.
func formed(text string, isJSON bool) string {
	var b bytes.Buffer
	if !isJSON || deep([]byte(text)) || json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}
