package office

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
)

// AdoptDeaths is Adopt for letters of a job queue, whose jobs can die more than once. A job that
// this office gave back counts its redrives, and names the letter of its death before and the
// operation that sent it. A letter whose job died again without us is discarded: nothing lies there
// any more that could go back.
func (o *Office) AdoptDeaths(ctx context.Context, letters []nixie.Letter, reason string) ([]nixie.Receipt, []error) {
	over, err := o.deathsBefore(ctx, letters)
	if err != nil {
		return make([]nixie.Receipt, len(letters)), slices.Repeat([]error{err}, len(letters))
	}
	receipts, errs := o.Adopt(ctx, letters, reason)
	var list []store.Resolution
	for i, ids := range over {
		for _, id := range ids {
			if errs[i] == nil && len(list) < nixie.MaxBatch {
				list = append(list, store.Resolution{Letter: id, Event: store.OnDiscard, Actor: o.actor,
					Reason: "died again, see " + receipts[i].ID.String()})
			}
		}
	}
	if len(list) > 0 {
		o.store.Resolve(ctx, list) // what another caller moved meanwhile stays; the next adoption looks again
	}
	return receipts, errs
}

// deathsBefore reads the letters of earlier deaths of the same jobs, and writes into the letters
// what follows from them. It returns for each letter those of earlier deaths that are over.
func (o *Office) deathsBefore(ctx context.Context, letters []nixie.Letter) (over [][]nixie.ID, err error) {
	over = make([][]nixie.ID, len(letters))
	var keys []string
	for i := range letters {
		if m := &letters[i].Message; m.Origin != nil && m.Origin.Database != "" && m.Key != "" {
			keys = append(keys, m.Key)
		}
	}
	if len(keys) == 0 {
		return over, nil
	}
	before := map[string][]nixie.Letter{}
	for there, err := range o.AllLetters(ctx, nixie.Filter{Keys: keys}, false) {
		if err != nil {
			return nil, err
		}
		before[there.Message.Key] = append(before[there.Message.Key], there)
	}
	for i := range letters {
		l := &letters[i]
		var newest *nixie.Letter
		for k := range before[l.Message.Key] {
			old := &before[l.Message.Key][k]
			if !diedBefore(&old.Message, &l.Message) {
				continue
			}
			if newest == nil || old.Message.Origin.Offset > newest.Message.Origin.Offset {
				newest = old
			}
			if old.Status.Unresolved() && old.Status != nixie.StatusRedriving {
				over[i] = append(over[i], old.ID)
			}
		}
		if newest != nil {
			follow(l, newest)
		}
	}
	return over, nil
}

// diedBefore reports whether two messages are one job, and the first one died earlier: a death of
// unknown time is neither. They have the time of creation in common, or without one their bodies.
func diedBefore(old, m *nixie.Message) bool {
	a, b := old.Origin, m.Origin
	if a == nil || b == nil || a.System != b.System || a.Channel != b.Channel || a.MessageID != b.MessageID ||
		a.Offset < 0 || a.Offset >= b.Offset {
		return false
	}
	if site := broker.SiteOf(a); !site.Has(b) {
		return false
	}
	made, again := old.Header(broker.HeaderMade), m.Header(broker.HeaderMade)
	switch {
	case made != "" || again != "":
		return made == again
	case !a.Timestamp.IsZero() || !b.Timestamp.IsZero():
		return a.Timestamp.Equal(b.Timestamp)
	}
	return old.Hash == nixie.HashBody(m.Body)
}

// follow makes a letter the one of a later death than that of old.
func follow(l, old *nixie.Letter) {
	m := &l.Message
	m.Redrives = old.Message.Redrives
	m.Generation = m.Redrives + 1
	if n := len(l.History); n > 0 {
		l.History[n-1].Generation = m.Generation
	}
	if old.Status == nixie.StatusResolved && old.Message.State == nixie.Canceled && m.Redrives > 0 { // we gave it back
		m.Origin.Earlier, l.Operation = old.ID, old.Operation
	}
}
