package office

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// maxCandidates limits the letters or messages that an [AmbiguousError] lists.
const maxCandidates = 10

// AmbiguousError reports that a key names more than one letter or message.
type AmbiguousError struct {
	Key        string
	Candidates []Candidate // at most ten
	More       bool        // there are others
}

// Candidate is one of the letters or messages that a key names.
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

// Letter finds a letter with its history by its ID, the ID of its message, or the key of its
// message. A key that several letters have is an [AmbiguousError].
func (o *Office) Letter(ctx context.Context, arg string) (nixie.Letter, error) {
	id, err := findOne(ctx, arg, o.store.Letters, func(l *nixie.Letter) Candidate {
		return Candidate{l.ID, l.Message.Queue, string(l.Status)}
	})
	switch {
	case err != nil:
		return nixie.Letter{}, err
	case id.IsZero():
		return nixie.Letter{}, nixie.Errorf(nixie.CodeNotFound,
			o.wording.say("no letter has the ID, message ID or key %q: {letters} shows what there is"), arg)
	}
	return readWhole(ctx, "letter", id, o.store.Letters)
}

// Message finds a message with its failures by its ID, the ID of its letter, or its key.
func (o *Office) Message(ctx context.Context, arg string) (store.Record, error) {
	id, err := findOne(ctx, arg, o.store.Messages, func(m *store.Record) Candidate {
		return Candidate{m.ID, m.Queue, string(m.State)}
	})
	if err == nil && id.IsZero() {
		var l nixie.Letter
		l, err = o.Letter(ctx, arg)
		id = l.Message.ID
	}
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound:
		return store.Record{}, nixie.Errorf(nixie.CodeNotFound,
			o.wording.say("no message has the ID, letter ID or key %q: {messages} shows what there is"), arg)
	case err != nil:
		return store.Record{}, err
	}
	return o.wholeMessage(ctx, id)
}

func (o *Office) wholeMessage(ctx context.Context, id nixie.ID) (store.Record, error) {
	return readWhole(ctx, "message", id, o.store.Messages)
}

// read is Letters or Messages of the store.
type read[T any] func(context.Context, nixie.Filter, store.Page) ([]T, string, error)

// findOne returns the ID of the only row that an argument names, or no ID when there is none.
func findOne[T any](ctx context.Context, arg string, rows read[T], candidate func(*T) Candidate) (nixie.ID, error) {
	for _, f := range finders(arg) {
		list, _, err := rows(ctx, f, store.Page{Limit: maxCandidates + 1})
		switch {
		case err != nil:
			return nixie.ID{}, err
		case len(list) == 1:
			return candidate(&list[0]).ID, nil
		case len(list) > 1:
			e := &AmbiguousError{Key: arg, More: len(list) > maxCandidates}
			for i := range list[:min(len(list), maxCandidates)] {
				e.Candidates = append(e.Candidates, candidate(&list[i]))
			}
			return nixie.ID{}, e
		}
	}
	return nixie.ID{}, nil
}

// readWhole reads one row with its body and history.
func readWhole[T any](ctx context.Context, noun string, id nixie.ID, rows read[T]) (whole T, err error) {
	list, _, err := rows(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Limit: 1, Whole: true})
	switch {
	case err != nil:
		return whole, err
	case len(list) == 0:
		return whole, nixie.Errorf(nixie.CodeNotFound, "%s %s is gone", noun, id)
	}
	return list[0], nil
}

// finders returns the filters that may find an argument, in order: by ID, if it has the form of
// one, then by key.
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

// LetterIDs finds the letters that the arguments name, each once. Its error reports all arguments
// that name none or more than one.
func (o *Office) LetterIDs(ctx context.Context, args []string) ([]nixie.ID, error) {
	return distinctIDs(args, func(arg string) (nixie.ID, error) {
		l, err := o.Letter(ctx, arg)
		return l.ID, err
	})
}

// MessageIDs finds the messages that the arguments name, as [Office.LetterIDs] does letters.
func (o *Office) MessageIDs(ctx context.Context, args []string) ([]nixie.ID, error) {
	return distinctIDs(args, func(arg string) (nixie.ID, error) {
		r, err := o.Message(ctx, arg)
		return r.ID, err
	})
}

func distinctIDs(args []string, find func(arg string) (nixie.ID, error)) ([]nixie.ID, error) {
	var ids []nixie.ID
	var wrong []error
	seen := map[nixie.ID]bool{}
	for _, arg := range args {
		id, err := find(arg)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case !seen[id]:
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, errors.Join(wrong...)
}
