package office

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/store"
)

// Adopt takes in letters of messages that died elsewhere, and returns a receipt or an error for
// each. The audit records the reason with each new letter.
func (o *Office) Adopt(ctx context.Context, letters []nixie.Letter, reason string) ([]nixie.Receipt, []error) {
	return o.store.Adopt(ctx, letters, o.actor, reason)
}

// PreviewAdopt returns what Adopt would answer now, and changes nothing. A letter that the store
// would refuse has an error. A letter that the store has, by ID or origin, has a receipt with its
// ID. A new letter has a zero receipt. It does not detect duplicates within the call, nor a dedupe
// key that another message holds.
func (o *Office) PreviewAdopt(ctx context.Context, letters []nixie.Letter) ([]nixie.Receipt, []error) {
	receipts, errs := make([]nixie.Receipt, len(letters)), make([]error, len(letters))
	for i := range letters {
		if errs[i] = check.Letter(&letters[i]); errs[i] == nil {
			receipts[i], errs[i] = o.known(ctx, &letters[i])
		}
	}
	return receipts, errs
}

func (o *Office) known(ctx context.Context, l *nixie.Letter) (nixie.Receipt, error) {
	m := &l.Message
	var ids []nixie.ID
	for _, id := range [...]nixie.ID{l.ID, m.ID} {
		if !id.IsZero() {
			ids = append(ids, id)
		}
	}
	var choices []nixie.Filter
	if len(ids) > 0 {
		choices = append(choices, nixie.Filter{IDs: ids})
	}
	if m.Origin != nil && m.Key != "" {
		choices = append(choices, nixie.Filter{Keys: []string{m.Key}})
	}
	for _, f := range choices {
		for there, err := range o.AllLetters(ctx, f, false) {
			if err != nil {
				return nixie.Receipt{}, err
			}
			if slices.Contains(ids, there.ID) || slices.Contains(ids, there.Message.ID) ||
				store.KnownOrigin(there.Message.Origin, m.Origin) {
				return nixie.Receipt{ID: there.ID, Duplicate: true, Different: there.Message.Hash != nixie.HashBody(m.Body)}, nil
			}
		}
	}
	return nixie.Receipt{}, nil
}

// Letter makes the letter that the view shows; it is the inverse of [ViewLetterDetail]. Fields that
// the view has twice come from its message. Errors are of [nixie.CodeInvalid] and name the field.
func (s *LetterDetail) Letter() (nixie.Letter, error) {
	m, err := s.Message.message()
	if err != nil {
		return nixie.Letter{}, err
	}
	l := nixie.Letter{
		ID: s.ID, Message: m, HistoryDropped: s.HistoryDropped, Cause: s.Cause, Class: s.Class, Reason: s.Reason,
		Signature: s.Signature, Fingerprint: s.Fingerprint, Status: s.Status, Redrivable: s.Redrivable, NeedsReview: s.NeedsReview,
		Rule:          s.Rule,
		FirstFailedAt: s.FirstFailedAt.utc(), LastFailedAt: s.LastFailedAt.utc(), DiedAt: s.DiedAt.utc(),
		ResolvedAt: s.ResolvedAt.utc(),
		Note:       s.Note, Revision: s.Revision, Damage: s.Damage,
	}
	l.Message.Headers = orNil(s.Headers)
	for _, n := range s.Notes {
		l.Notes = append(l.Notes, nixie.Note{At: n.At.utc(), By: n.By, Text: n.Text})
	}
	if err := l.Operation.UnmarshalText([]byte(s.Operation)); err != nil {
		return l, nixie.Errorf(nixie.CodeInvalid, "operation: %w", err)
	}
	if l.Artifacts, err = attachments(s.Artifacts); err != nil {
		return l, nixie.Errorf(nixie.CodeInvalid, "artifacts: %w", err)
	}
	for i := range s.History {
		f, err := s.History[i].failure()
		if err != nil {
			return l, nixie.Errorf(nixie.CodeInvalid, "history[%d]: %w", i, err)
		}
		l.History = append(l.History, f)
	}
	if len(l.Artifacts) > 0 && !s.artifactsAreLast() {
		return l, nixie.Errorf(nixie.CodeInvalid,
			"artifacts are not the attachments of the last failure in history, which they repeat: add them there")
	}
	return l, nil
}

func (s *LetterDetail) artifactsAreLast() bool {
	if len(s.History) == 0 {
		return false
	}
	return slices.EqualFunc(s.Artifacts, s.History[len(s.History)-1].Attachments, func(a, b AttachmentView) bool {
		return a.Name == b.Name && a.Truncated == b.Truncated && equalText(a.Text, b.Text) && equalText(a.Base64, b.Base64)
	})
}

func equalText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func (v *MessageView) message() (nixie.Message, error) {
	m := nixie.Message{
		ID: v.ID, Queue: v.Queue, Type: v.Type, Key: v.Key, Stream: v.Stream, DedupeKey: v.DedupeKey, Priority: v.Priority, State: v.State,
		Attempts: countOf(v.Attempts), Deliveries: v.Deliveries, Crashes: v.Crashes, Generation: v.Generation, Redrives: v.Redrives,
		Steps: orNil(v.Steps), OrderGap: v.OrderGap, Origin: v.Origin.origin(), EnqueuedAt: v.EnqueuedAt.utc(),
		RedrivenAt: v.RedrivenAt.utc(), ExpiresAt: v.ExpiresAt.utc(),
		FirstReceivedAt: v.FirstReceivedAt.utc(), EndedAt: v.EndedAt.utc(), LastFailure: v.LastFailure,
	}
	var err error
	if m.Body, err = v.bytes(); err != nil {
		return m, nixie.Errorf(nixie.CodeInvalid, "message.body: %w", err)
	}
	if v.Hash != "" {
		sum, err := hex.DecodeString(v.Hash)
		if err != nil || len(sum) != len(m.Hash) {
			return m, nixie.Errorf(nixie.CodeInvalid, "message.sha256 is %q: want 64 hex digits", clip(v.Hash))
		}
		copy(m.Hash[:], sum)
	}
	return m, nil
}

// bytes reads the bytes that ViewBytes wrote.
func (b *Bytes) bytes() ([]byte, error) {
	switch {
	case b.Text != nil && b.Base64 != nil:
		return nil, nixie.Errorf(nixie.CodeInvalid, "text and base64 are both there: keep one")
	case b.Text != nil:
		return []byte(*b.Text), nil
	case b.Base64 == nil:
		return nil, nil
	}
	data, err := base64.StdEncoding.DecodeString(*b.Base64)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "base64: %w", err)
	}
	return data, nil
}

func (v *FailureView) failure() (nixie.Failure, error) {
	f := nixie.Failure{
		Generation: v.Generation, Attempt: countOf(v.Attempt), StartedAt: v.StartedAt.utc(), FailedAt: v.FailedAt.utc(),
		Class: v.Class, Reason: v.Reason, Type: v.Type, Text: v.Text, Context: orNil(v.Context), Stack: v.Stack, Step: v.Step,
		Group: v.Group, Worker: v.Worker, Node: v.Node, ExitCode: v.ExitCode, LogLocation: v.LogLocation, Steps: orNil(v.Steps),
		Decision: v.Decision, NextAt: v.NextAt.utc(),
	}
	ns := math.Round(v.DurationMS * float64(time.Millisecond))
	if !(ns >= 0 && ns <= float64(nixie.MaxDelay)) {
		return f, nixie.Errorf(nixie.CodeInvalid, "duration_ms is %v: give milliseconds from 0 to %d", v.DurationMS,
			nixie.MaxDelay.Milliseconds())
	}
	f.Took = time.Duration(ns)
	var err error
	f.Attachments, err = attachments(v.Attachments)
	return f, err
}

func attachments(views []AttachmentView) ([]nixie.Attachment, error) {
	var list []nixie.Attachment
	for _, v := range views {
		body := Bytes{Text: v.Text, Base64: v.Base64}
		data, err := body.bytes()
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "attachment %q: %w", clip(v.Name), err)
		}
		list = append(list, nixie.Attachment{Name: v.Name, Data: data, Truncated: v.Truncated})
	}
	return list, nil
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// utc returns the time in UTC.
func (m Timestamp) utc() time.Time {
	if m.IsZero() {
		return time.Time{}
	}
	return m.UTC()
}

// clip shortens foreign text for an error.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
