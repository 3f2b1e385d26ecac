package office

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

// maxCandidates limits the letters or messages that an [AmbiguousError] lists.
const maxCandidates = 10

// AmbiguousError reports that a key, or the end of an ID, names more than one letter, message or
// operation.
type AmbiguousError struct {
	Key        string
	Candidates []Candidate // at most ten
	More       bool        // there are others
}

// Candidate is one of the letters or messages that a key names.
type Candidate struct {
	ID    nixie.ID
	Queue string
	State string // status of a letter, state of a message, event of an operation
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q names more than one; give one of these IDs:", e.Key)
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
// message. The last 6 digits or more of an ID will do. What several letters have is an
// [AmbiguousError].
func (o *Office) Letter(ctx context.Context, arg string) (nixie.Letter, error) {
	id, err := o.letterID(ctx, finders(arg))
	if ending, is := filter.Ending(arg); is && id.IsZero() && err == nil {
		var of nixie.ID
		of, err = o.messageID(ctx, []finder{{arg, nixie.Filter{Endings: []string{ending}}}})
		if err == nil && !of.IsZero() {
			id, err = o.letterID(ctx, []finder{{arg, nixie.Filter{IDs: []nixie.ID{of}}}})
		}
	}
	switch {
	case err != nil:
		return nixie.Letter{}, err
	case id.IsZero():
		return nixie.Letter{}, nixie.Errorf(nixie.CodeNotFound,
			o.wording.say("no letter has the ID, message ID or key %q%s: {letters} shows what there is"), arg, tooShort(arg))
	}
	return readWhole(ctx, "letter", id, o.store.Letters)
}

func (o *Office) letterID(ctx context.Context, by []finder) (nixie.ID, error) {
	return findOne(ctx, by, o.store.Letters, func(l *nixie.Letter) Candidate {
		return Candidate{l.ID, l.Message.Queue, string(l.Status)}
	})
}

func (o *Office) messageID(ctx context.Context, by []finder) (nixie.ID, error) {
	return findOne(ctx, by, o.store.Messages, func(m *store.Record) Candidate {
		return Candidate{m.ID, m.Queue, string(m.State)}
	})
}

// Message finds a message with its failures by its ID, the ID of its letter, or its key. The last 6
// digits or more of an ID will do.
func (o *Office) Message(ctx context.Context, arg string) (store.Record, error) {
	id, err := o.messageID(ctx, finders(arg))
	if err == nil && id.IsZero() {
		var l nixie.Letter
		l, err = o.Letter(ctx, arg)
		id = l.Message.ID
	}
	switch {
	case nixie.CodeOf(err) == nixie.CodeNotFound:
		return store.Record{}, nixie.Errorf(nixie.CodeNotFound,
			o.wording.say("no message has the ID, letter ID or key %q%s: {messages} shows what there is"), arg, tooShort(arg))
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

// finder is a filter that may find what an argument names.
type finder struct {
	arg string
	nixie.Filter
}

// findOne returns the ID of the only row that an argument names, or no ID when there is none.
func findOne[T any](ctx context.Context, by []finder, rows read[T], candidate func(*T) Candidate) (nixie.ID, error) {
	for _, f := range by {
		list, _, err := rows(ctx, f.Filter, store.Page{Limit: maxCandidates + 1})
		switch {
		case err != nil:
			return nixie.ID{}, err
		case len(list) == 1:
			return candidate(&list[0]).ID, nil
		case len(list) > 1:
			e := &AmbiguousError{Key: f.arg, More: len(list) > maxCandidates}
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
// one, then by key, and then by the end of an ID.
func finders(arg string) (by []finder) {
	if id, err := nixie.ParseID(arg); err == nil && !id.IsZero() {
		by = append(by, finder{arg, nixie.Filter{IDs: []nixie.ID{id}}})
	}
	if arg != "" {
		by = append(by, finder{arg, nixie.Filter{Keys: []string{arg}}})
	}
	if ending, is := filter.Ending(arg); is {
		by = append(by, finder{arg, nixie.Filter{Endings: []string{ending}}})
	}
	return by
}

// FindOperation finds an operation by its ID, or by the last 6 digits of that or more. What several
// have is an [AmbiguousError].
func (o *Office) FindOperation(ctx context.Context, arg string) (found store.Operation, err error) {
	ending, is := filter.Ending(arg)
	if !is {
		id, err := nixie.ParseID(arg)
		if err != nil {
			return found, nixie.Errorf(nixie.CodeInvalid, "%q is no ID of an operation: give the last %d digits or more, as nixie "+
				"operation list shows them", arg, nixie.MinEnding)
		}
		return o.Operation(ctx, id)
	}
	e := &AmbiguousError{Key: arg}
	for op, err := range o.AllOperations(ctx) {
		if err != nil {
			return found, err
		}
		if op.ID.EndsWith(ending) {
			found = op
			e.Candidates = append(e.Candidates, Candidate{op.ID, op.Actor, string(op.Event)})
		}
	}
	switch len(e.Candidates) {
	case 0:
		return found, nixie.Errorf(nixie.CodeNotFound, "no operation has an ID that ends with %q: nixie operation list shows what there is",
			arg)
	case 1:
		return found, nil
	}
	e.More = len(e.Candidates) > maxCandidates
	e.Candidates = e.Candidates[:min(len(e.Candidates), maxCandidates)]
	return found, e
}

// tooShort says that what may be the end of an ID has too few digits to name one.
func tooShort(arg string) string {
	if strings.Trim(arg, "0123456789abcdefABCDEF") != "" || len(arg) >= nixie.MinEnding {
		return ""
	}
	return fmt.Sprintf(" (give at least %d digits of an ID)", nixie.MinEnding)
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
