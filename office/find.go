package office

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// maxCandidates is how many letters or messages an [AmbiguousError] lists.
const maxCandidates = 10

// AmbiguousError says that a key names more than one thing.
type AmbiguousError struct {
	Key        string
	Candidates []Candidate // at most ten
	More       bool        // there are others
}

// Candidate is one of the things that a key names.
type Candidate struct {
	ID    nixie.ID
	Queue string
	State string // status of a letter, state of a message
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "key %q names more than one; give one of these IDs:", e.Key)
	for _, c := range e.Candidates {
		fmt.Fprintf(&b, "\n  %s  %s  %s", c.ID, c.State, c.Queue)
	}
	if e.More {
		b.WriteString("\n  …")
	}
	return b.String()
}

// Unwrap makes CodeOf answer [nixie.CodeConflict].
func (e *AmbiguousError) Unwrap() error {
	return &nixie.Error{Code: nixie.CodeConflict, Text: e.Error()}
}

// Letter finds a letter with its whole story by its ID, the ID of its message,
// or the key of its message. A key that several letters have is an
// [AmbiguousError].
func (o *Office) Letter(ctx context.Context, arg string) (nixie.Letter, error) {
	for _, f := range finders(arg) {
		list, _, err := o.store.Letters(ctx, f, store.Page{Limit: maxCandidates + 1})
		if err != nil {
			return nixie.Letter{}, err
		}
		switch len(list) {
		case 0:
			continue
		case 1:
			return o.wholeLetter(ctx, list[0].ID)
		}
		e := &AmbiguousError{Key: arg, More: len(list) > maxCandidates}
		for _, l := range list[:min(len(list), maxCandidates)] {
			e.Candidates = append(e.Candidates, Candidate{l.ID, l.Message.Queue, string(l.Status)})
		}
		return nixie.Letter{}, e
	}
	return nixie.Letter{},
		nixie.Errorf(nixie.CodeNotFound, "no letter has the ID, message ID or key %q: nixie dlq list shows what there is", arg)
}

func (o *Office) wholeLetter(ctx context.Context, id nixie.ID) (nixie.Letter, error) {
	list, _, err := o.store.Letters(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Limit: 1, Whole: true})
	if err == nil && len(list) == 0 {
		err = nixie.Errorf(nixie.CodeNotFound, "letter %s is gone", id)
	}
	if err != nil {
		return nixie.Letter{}, err
	}
	return list[0], nil
}

// Message finds a message with what went wrong so far by its ID, the ID of its
// letter, or its key.
func (o *Office) Message(ctx context.Context, arg string) (store.Record, error) {
	for _, f := range finders(arg) {
		list, _, err := o.store.Messages(ctx, f, store.Page{Limit: maxCandidates + 1})
		if err != nil {
			return store.Record{}, err
		}
		switch len(list) {
		case 0:
			continue
		case 1:
			return o.wholeMessage(ctx, list[0].ID)
		}
		e := &AmbiguousError{Key: arg, More: len(list) > maxCandidates}
		for _, m := range list[:min(len(list), maxCandidates)] {
			e.Candidates = append(e.Candidates, Candidate{m.ID, m.Queue, string(m.State)})
		}
		return store.Record{}, e
	}
	if l, err := o.Letter(ctx, arg); err == nil {
		return o.wholeMessage(ctx, l.Message.ID)
	} else if nixie.CodeOf(err) != nixie.CodeNotFound {
		return store.Record{}, err
	}
	return store.Record{},
		nixie.Errorf(nixie.CodeNotFound, "no message has the ID, letter ID or key %q: nixie message list shows what there is", arg)
}

func (o *Office) wholeMessage(ctx context.Context, id nixie.ID) (store.Record, error) {
	list, _, err := o.store.Messages(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Limit: 1, Whole: true})
	if err == nil && len(list) == 0 {
		err = nixie.Errorf(nixie.CodeNotFound, "message %s is gone", id)
	}
	if err != nil {
		return store.Record{}, err
	}
	return list[0], nil
}

// finders are the filters that an argument is tried with, in order: as an ID,
// if it looks like one, then as a key.
func finders(arg string) []nixie.Filter {
	byKey := nixie.Filter{Keys: []string{arg}}
	if id, err := nixie.ParseID(arg); err == nil && !id.IsZero() {
		return []nixie.Filter{{IDs: []nixie.ID{id}}, byKey}
	}
	if arg == "" {
		return nil
	}
	return []nixie.Filter{byKey}
}

// LetterIDs finds the letters that the arguments name, each once, and says
// everything that is wrong with them at once.
func (o *Office) LetterIDs(ctx context.Context, args []string) ([]nixie.ID, error) {
	var ids []nixie.ID
	var wrong []error
	seen := map[nixie.ID]bool{}
	for _, arg := range args {
		l, err := o.Letter(ctx, arg)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if !seen[l.ID] {
			seen[l.ID] = true
			ids = append(ids, l.ID)
		}
	}
	return ids, errors.Join(wrong...)
}
