package office

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Repair is a letter that goes back to its queue with another body. Its headers stay.
type Repair struct {
	Letter   nixie.ID
	Revision int64 // of the letter that the editor saw; another one by now is CodeConflict
	Body     []byte
	Reason   string
	Force    bool // see [OperationRequest]
}

// Repair redrives a letter with the change, and returns its operation. A letter that is not as it
// was when its editor saw it, or that cannot go, stays as it is: that is CodeConflict.
func (o *Office) Repair(ctx context.Context, r *Repair) (nixie.ID, error) {
	l, err := o.LetterByID(ctx, r.Letter)
	if err == nil {
		err = r.check(&l)
	}
	if err != nil {
		return nixie.ID{}, err
	}
	w := &OperationRequest{
		Event: store.OnRedrive, IDs: []nixie.ID{r.Letter}, Reason: r.Reason, Force: r.Force,
		Edit: func(_ context.Context, l *nixie.Letter) (*store.Edit, error) {
			edit := &store.Edit{Body: r.Body, Headers: l.Message.Headers, Revision: r.Revision}
			return edit, edit.Check()
		},
	}
	begun, err := o.Begin(ctx, w)
	if err != nil {
		return nixie.ID{}, err
	}
	done, err := o.Run(ctx, begun.Operation, w)
	if err == nil && done.Done() == 0 {
		why := "another operation has it"
		if len(done.Refused) > 0 {
			why = done.Refused[0].Why
		}
		err = nixie.Errorf(nixie.CodeConflict, "nothing was changed: %s", why)
	}
	return begun.Operation, err
}

// OnlyByForce reports whether a letter that can be redriven is redriven with force only.
func OnlyByForce(l *nixie.Letter) bool {
	return !l.Redrivable || l.NeedsReview || l.Status == nixie.StatusReview
}

// check says why a letter cannot get the edit, before an operation begins.
func (r *Repair) check(l *nixie.Letter) error {
	switch {
	case l.Revision != r.Revision:
		return nixie.Errorf(nixie.CodeConflict, "the letter has changed since it was read: look at what it says now, and save again")
	case !r.Force && OnlyByForce(l):
		return nixie.Errorf(nixie.CodeConflict, "the letter is not redrivable or needs review: choose force to redrive it nevertheless")
	case nixie.HashBody(r.Body) == l.Message.Hash:
		return nixie.Errorf(nixie.CodeInvalid, "nothing differs: change the body, or redrive the letter as it is")
	}
	edit := store.Edit{Body: r.Body, Headers: l.Message.Headers}
	return edit.Check()
}
