package redrive

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
)

// EditFunc makes the edit of a letter that goes back to its queue. The letter has its body. Errors
// count like those of [SendFunc].
type EditFunc = func(ctx context.Context, l *nixie.Letter) (*store.Edit, error)

// maxEdited limits the bytes of edited bodies in a group.
const maxEdited = 16 << 20

// Edits returns the function with which an [Engine] edits letters that go back to their queues: by
// Drop, Set and Transform, which sees all headers. The destination needs no To.
func (r Destination) Edits() (EditFunc, error) {
	if err := r.checkSet(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, l *nixie.Letter) (*store.Edit, error) {
		back := broker.FromLetter(l)
		back.Value, back.Headers = l.Message.Body, nil
		for _, h := range l.Message.Headers {
			back.Headers = append(back.Headers, broker.RecordHeader{Name: h.Name, Value: []byte(h.Value)})
		}
		r.edit(&back)
		if err := r.transform(ctx, &back); err != nil {
			return nil, err
		}
		edit := &store.Edit{Body: back.Value, Revision: l.Revision}
		for _, h := range back.Headers {
			edit.Headers = append(edit.Headers, nixie.Header{Name: h.Name, Value: string(h.Value)})
		}
		return edit, edit.Check()
	}, nil
}

// transform changes a record by the caller's function.
func (r *Destination) transform(ctx context.Context, back *broker.Returning) error {
	if r.Transform == nil {
		return nil
	}
	err := r.Transform(ctx, back)
	switch {
	case ctx.Err() != nil:
		return nixie.Errorf(nixie.CodeUnavailable, "%w", ctx.Err())
	case err != nil:
		return nixie.Errorf(nixie.CodeInvalid, "%w", err)
	}
	return nil
}

// editGroup makes a group of edited letters. No letter goes without its edit, even if its state
// changes meanwhile.
func (e *Engine) editGroup(ctx context.Context, r *Result, ids []nixie.ID) (*group, int, error) {
	g := &group{}
	ids, letters, err := e.read(ctx, ids)
	if err != nil {
		return g, 0, err
	}
	size := 0
	for n, id := range ids {
		to := e.resolution(r, id)
		refusal := "is gone"
		if l := letters[id]; l != nil {
			if refusal = e.Refusal(&r.Operation, l); refusal == "" {
				to.Edit, err = e.c.Edit(ctx, l)
			}
		}
		switch {
		case Refuses(err):
			refusal = "stays: " + err.Error()
		case err != nil:
			return g, n, nixie.Errorf(nixie.CodeOf(err), "letter %s: %w", id, err)
		}
		if refusal != "" {
			to.Skip, to.Edit = "letter "+id.String()+" "+refusal, nil
		} else {
			size += len(to.Edit.Body)
		}
		g.ids, g.list, err = append(g.ids, id), append(g.list, to), nil
		if size >= maxEdited {
			return g, n + 1, nil
		}
	}
	return g, len(ids), nil
}
