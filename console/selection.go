package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// maxPreview limits the letters that a preview reads one by one. More are counted by their causes.
const maxPreview = 2_000

// selection has the letters that an operation would take, before it begins.
type selection struct {
	search
	IDs      []string
	Max      string
	Shown    string // the moment of the preview: letters that die later are not in the selection
	Count    int64  // letters that are selected
	AtMost   int64  // part of Count that can go, where Plan is nil
	Groups   []office.GroupView
	More     int          // groups that are not among them
	Plan     *office.Plan // nil: too many letters to read each
	Coverage *office.Coverage
}

// Goes returns the number of letters that the operation would change.
func (s *selection) Goes() int64 {
	if s.Plan != nil {
		return s.Plan.Movable
	}
	if most, _ := strconv.ParseInt(s.Max, 10, 64); most > 0 {
		return min(most, s.AtMost)
	}
	return s.AtMost
}

// Going returns it in words, for a button.
func (s *selection) Going() string {
	if s.Plan == nil {
		return "at most " + plural(s.Goes(), "letter")
	}
	return plural(s.Goes(), "letter")
}

// selection reads which letters a form asks for. The request is nil when the filter has a fault.
func (c *console) selection(r *http.Request, w *office.OperationRequest) (selection, *office.OperationRequest, error) {
	if err := r.ParseForm(); err != nil {
		return selection{}, nil, nixie.Errorf(nixie.CodeInvalid, "the form cannot be read: %w", err)
	}
	s := selection{search: c.search(r), IDs: r.Form["id"], Max: r.FormValue("max"), Shown: r.FormValue("shown")}
	if s.Fault != nil {
		return s, nil, nil
	}
	w.Filter, w.Text, w.Reason = s.filter, s.Filter, reason(r)
	var err error
	if w.IDs, err = chosen(r); err != nil {
		return s, nil, err
	}
	if s.Max != "" {
		if w.Max, err = strconv.Atoi(s.Max); err != nil || w.Max < 0 {
			return s, nil, nixie.Errorf(nixie.CodeInvalid, "the most letters are %q: give a positive number, or nothing for all", s.Max)
		}
	}
	if s.Shown == "" {
		s.Shown = c.Clock().UTC().Format(time.RFC3339Nano)
	}
	shown, err := time.Parse(time.RFC3339Nano, s.Shown)
	if err != nil {
		return s, nil, nixie.Errorf(nixie.CodeInvalid, "the time of the preview is %q: open the page again", s.Shown)
	}
	if before := &w.Filter.Died.Before; len(w.IDs) == 0 && (before.IsZero() || shown.Before(*before)) {
		*before = shown
	}
	return s, w, nil
}

// preview counts the letters of a selection by their causes, and says what would become of them
// unless they are too many.
func (c *console) preview(ctx context.Context, s *selection, w *office.OperationRequest) error {
	f := w.EffectiveFilter()
	causes, coverage, err := c.causes(ctx, f)
	if err != nil {
		return err
	}
	for _, n := range causes {
		s.Count += n.Count
	}
	s.Coverage, s.More = coverage, max(0, len(causes)-maxAlerts)
	if s.Groups, err = c.described(ctx, f, causes[:len(causes)-s.More]); err != nil {
		return err
	}
	if s.Count > maxPreview || coverage != nil {
		s.AtMost, err = c.atMost(ctx, f, w)
		return err
	}
	plan, err := c.office.Preview(ctx, w)
	s.Plan = &plan
	return err
}

// atMost counts the letters of a filter that an operation can change: a redrive without force those
// that are redrivable and need no review. Letters that were not counted are taken for such.
func (c *console) atMost(ctx context.Context, f nixie.Filter, w *office.OperationRequest) (most int64, err error) {
	if w.Event == office.OnRedrive && !w.Force {
		yes, no := true, false
		if f.Redrivable != nil && !*f.Redrivable || f.NeedsReview != nil && *f.NeedsReview {
			return 0, nil
		}
		f.Redrivable, f.NeedsReview = &yes, &no
	}
	causes, coverage, err := c.causes(ctx, f)
	for _, n := range causes {
		most += n.Count
	}
	if coverage != nil {
		most += coverage.Of - coverage.Newest
	}
	return most, err
}

// begin freezes the selection that was shown, and begins to change its letters. It returns the
// address of the operation.
func (c *console) begin(ctx context.Context, s *selection, w *office.OperationRequest) (string, error) {
	if w == nil {
		return "", nixie.Errorf(nixie.CodeInvalid, "the filter cannot be read: %s", s.Fault.Message)
	}
	op, err := c.office.Begin(ctx, w)
	if err != nil {
		return "", err
	}
	return c.start(op.Operation, w), nil
}
