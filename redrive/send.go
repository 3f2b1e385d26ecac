package redrive

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// sendGroup hands letters to a broker and then resolves them, all in one call of the
// store: no queue of it sees them. Between the two lies the one moment in which a
// kill leaves a letter open that was sent; it is sent again by the next run, and can
// be told by its redrive ID.
func (e *Engine) sendGroup(ctx context.Context, r *Result, ids []nixie.ID) error {
	letters, err := e.whole(ctx, ids)
	if err != nil {
		return err
	}
	why := make(map[nixie.ID]string, len(ids)) // those that stay
	var out []nixie.Letter
	for _, id := range ids {
		l, found := letters[id]
		switch refusal := e.refusal(r, &l); {
		case !found:
			why[id] = "letter " + id.String() + " is gone"
		case refusal != "":
			why[id] = "letter " + id.String() + " " + refusal
		default:
			out = append(out, l)
		}
	}
	var failed error
	for i, err := range e.c.Send(ctx, out) {
		switch {
		case err == nil:
		case refuses(err):
			why[out[i].ID] = err.Error()
		default:
			failed = err
			delete(letters, out[i].ID)
		}
	}
	if err := e.sent(ctx, r, ids, letters, why); err != nil {
		return err
	}
	return failed
}

// sent resolves what was sent and skips what stays; what is in neither is pending.
func (e *Engine) sent(ctx context.Context, r *Result, ids []nixie.ID, letters map[nixie.ID]nixie.Letter, why map[nixie.ID]string) error {
	var list, confirmations []store.Resolution
	var about []nixie.ID
	for _, id := range ids {
		to := e.resolution(r, id)
		to.Force, to.MaxRedrives, to.Skip = true, 0, why[id] // it was asked before
		if _, found := letters[id]; !found && to.Skip == "" {
			continue
		}
		list, about = append(list, to), append(about, id)
		if to.Skip == "" {
			confirmations = append(confirmations, store.Resolution{Letter: id, Event: nixie.OnConfirm, Actor: r.Actor, Reason: r.Reason})
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	errs := e.c.Store.Resolve(ctx, append(list, confirmations...))
	return r.count(about, errs[:len(about)])
}

// whole reads letters with their bodies.
func (e *Engine) whole(ctx context.Context, ids []nixie.ID) (map[nixie.ID]nixie.Letter, error) {
	letters := make(map[nixie.ID]nixie.Letter, len(ids))
	page := store.Page{Limit: len(ids), Whole: true}
	for {
		some, next, err := e.c.Store.Letters(ctx, nixie.Filter{IDs: ids}, page)
		if err != nil {
			return nil, err
		}
		for i := range some {
			letters[some[i].ID] = some[i]
		}
		if page.Cursor = next; next == "" {
			return letters, nil
		}
	}
}

// refusal says why the store would not let a letter go, or "".
func (e *Engine) refusal(r *Result, l *nixie.Letter) string {
	_, possible := nixie.NextStatus(l.Status, nixie.OnRedrive)
	switch {
	case !possible:
		return "is " + string(l.Status)
	case len(l.Damage) > 0:
		return "is damaged: " + l.Damage[0]
	case !r.Force && (!l.Redrivable || l.NeedsReview):
		return "is not redrivable or needs review: look at it, then use force"
	case e.c.MaxRedrives > 0 && l.Message.Redrives >= e.c.MaxRedrives:
		return "was redriven too often: mend the cause, then raise the cap"
	}
	return ""
}
