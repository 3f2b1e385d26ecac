package store

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Documents keeps small JSON documents that operators and programs share, such as how far a watch
// has come. They belong to no message.
type Documents interface {
	// Find lists the documents of a space: by key, or with query.DueBy the earliest due first. The
	// latter has no further page: documents that were handled are due no more.
	Find(ctx context.Context, query DocumentQuery, page Page) ([]Document, string, error)

	// Write applies all changes of a writing and enqueues its messages, or does nothing. It returns
	// the documents as they are then, a zero one for each that was removed. CodeConflict: a
	// document has another revision than its change names, or another owner has its lease.
	// CodeNotFound: a document that is to be removed or taken does not exist. A writing wakes those
	// that wait for "document/" and the name of a space, see Wake of [Features].
	Write(ctx context.Context, writing Writing) ([]Document, error)
}

// Document is a small value with a name.
type Document struct {
	DocumentKey
	Value json.RawMessage
	Label string    // documents of a space are listed by it
	Due   time.Time // a program has something to do about it then; zero: never

	Expires  time.Time // from then on it does not exist; zero: never
	Revision int64     // above 0; no other version of any document had it
	Owner    string    // holder of the lease; "": it is free
	Until    time.Time // end of the lease
	At       time.Time // of the last change
	By       string    // actor of that; "": a program
}

// DocumentKey names a document.
type DocumentKey struct {
	Space string // the kind of the document
	Key   string // unique in its space
}

// DocumentQuery selects documents. All fields that are set have to hold.
type DocumentQuery struct {
	Space string // required
	Key   string
	Label string
	DueBy time.Time // due then or before
}

// Writing is one transaction on documents.
type Writing struct {
	Changes []DocumentChange // each of another document; at most [MaxDocumentChanges]
	Then    []nixie.Message  // follow in the same transaction; they have the limits of a call of Enqueue

	// What an operator writes has an entry of [OnWrite] in the audit of a queue, which is made if
	// it does not exist. All three are empty for what a program writes about itself.
	Queue, Actor, Reason string
}

// DocumentChange changes one document.
type DocumentChange struct {
	DocumentKey
	Verb DocumentVerb
	If   int64 // the revision that it has; 0: it does not exist; [AnyRevision]: any, or none for Put

	// Of Put.
	Value        json.RawMessage // at most [MaxDocument] bytes
	Label        string
	Due, Expires time.Time

	// Of Take.
	Owner string
	Lease time.Duration // from now on; 0 gives the lease back
}

// DocumentVerb is the action of a [DocumentChange].
type DocumentVerb string

// The changes of documents.
const (
	PutDocument    DocumentVerb = "put"    // replace value, label, due and expiry; a lease stays
	RemoveDocument DocumentVerb = "remove" // remove it, also if it is leased
	TakeDocument   DocumentVerb = "take"   // take or renew its lease, unless that of another owner is current
)

// Limits of documents.
const (
	MaxDocument        = 64 << 10 // bytes of a value
	MaxDocumentChanges = 100
	MaxSpace           = 32 // bytes of the name of a space
)

// AnyRevision as DocumentChange.If accepts each revision.
const AnyRevision = -1

// Check says what is wrong with the writing. It returns the bytes of values and bodies.
func (w *Writing) Check() (size int, err error) {
	if len(w.Changes) > MaxDocumentChanges {
		return 0, nixie.Errorf(nixie.CodeLimit, "writing has %d changes, the limit is %d: split it", len(w.Changes), MaxDocumentChanges)
	}
	seen := map[DocumentKey]bool{}
	for i := range w.Changes {
		c := &w.Changes[i]
		if err := c.check(); err != nil {
			return 0, err
		}
		if seen[c.DocumentKey] {
			return 0, nixie.Errorf(nixie.CodeInvalid, "writing changes document %s twice: make one change of both", c.DocumentKey)
		}
		seen[c.DocumentKey] = true
		size += len(c.Value)
	}
	if w.Actor != "" || w.Reason != "" || w.Queue != "" {
		if err := CheckOperator(w.Queue, w.Actor, w.Reason); err != nil {
			return 0, err
		}
	}
	if len(w.Then) == 0 {
		return size, nil
	}
	bodies, err := CheckMessages(w.Then)
	return size + bodies, err
}

func (c *DocumentChange) check() error {
	for _, name := range [...]struct {
		what, is string
		required bool
	}{
		{"space", c.Space, true}, {"document key", c.Key, true}, {"label", c.Label, false}, {"owner", c.Owner, c.Verb == TakeDocument},
	} {
		if name.required && name.is == "" {
			return nixie.Errorf(nixie.CodeInvalid, "%s is empty: %s of document %q of space %q needs it", name.what, c.Verb, c.Key, c.Space)
		}
		if err := nixie.CheckName(name.what, name.is); err != nil {
			return err
		}
	}
	switch {
	case len(c.Space) > MaxSpace:
		return nixie.Errorf(nixie.CodeInvalid, "space has %d bytes, the limit is %d: shorten it", len(c.Space), MaxSpace)
	case c.If < AnyRevision:
		return nixie.Errorf(nixie.CodeInvalid,
			"document %s is wanted at revision %d: give the one that was read, 0 for a new one, or %d for any", c.DocumentKey, c.If,
			AnyRevision)
	}
	switch c.Verb {
	case PutDocument:
		switch {
		case len(c.Value) > MaxDocument:
			return nixie.Errorf(nixie.CodeLimit, "document %s has %d bytes, the limit is %d: keep large values elsewhere",
				c.DocumentKey, len(c.Value), MaxDocument)
		case !utf8.Valid(c.Value) || !json.Valid(c.Value):
			return nixie.Errorf(nixie.CodeInvalid, "document %s is no JSON in UTF-8: encode its value", c.DocumentKey)
		}
	case RemoveDocument:
	case TakeDocument:
		if c.Lease != 0 {
			return CheckLease(c.Lease)
		}
	default:
		return nixie.Errorf(nixie.CodeInvalid, "change %q of document %s is not one of put, remove and take", c.Verb, c.DocumentKey)
	}
	return nil
}

func (k DocumentKey) String() string { return k.Space + "/" + k.Key }

// Check says what is wrong with the query.
func (q *DocumentQuery) Check() error {
	if q.Space == "" {
		return nixie.Errorf(nixie.CodeInvalid, "space is empty: name the kind of the documents")
	}
	return nil
}

// DocumentWake returns the name for which Wake of [Features] rings when a document of a space
// changes.
func DocumentWake(space string) string { return "document/" + space }
