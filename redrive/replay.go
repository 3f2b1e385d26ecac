package redrive

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Replay redrives the newest letter that matches the filter, as an operation of its own. So it has
// the actor, the reason and the outcome of every redrive, and the engine's cap and Force hold.
//
// A generation other than 0 names one death of the message. Errors are [nixie.CodeNotFound] if no
// letter matches, and [nixie.CodeConflict], with the reason, if the store refuses the redrive or if
// the letter is not about that death any more.
func (e *Engine) Replay(ctx context.Context, filter nixie.Filter, generation int, actor, reason string) error {
	l, err := e.newest(ctx, filter)
	if err != nil {
		return err
	}
	if generation > 0 && l.Message.Generation != generation {
		return nixie.Errorf(nixie.CodeConflict, "letter %s is about generation %d of its message, which was redriven after generation %d",
			l.ID, l.Message.Generation, generation)
	}
	op, err := e.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: actor, Reason: reason}, nixie.Filter{IDs: []nixie.ID{l.ID}}, 1)
	if err != nil {
		return err
	}
	done, err := e.Run(ctx, op.ID)
	switch {
	case err != nil:
		return err
	case len(done.Refused) > 0:
		return nixie.Errorf(nixie.CodeConflict, "%s", done.Refused[0].Why)
	case done.Done != 1:
		return nixie.Errorf(nixie.CodeConflict, "letter %s was redriven or removed meanwhile", l.ID)
	}
	return nil
}

// newest returns the letter of the latest death that matches a filter. A page may end before it.
func (e *Engine) newest(ctx context.Context, filter nixie.Filter) (*nixie.Letter, error) {
	for page := (store.Page{Limit: 1}); ; {
		list, next, err := e.c.Store.Letters(ctx, filter, page)
		switch {
		case err != nil:
			return nil, err
		case len(list) > 0:
			return &list[0], nil
		case next == "":
			return nil, nixie.Errorf(nixie.CodeNotFound, "there is no such letter")
		}
		page.Cursor = next
	}
}
