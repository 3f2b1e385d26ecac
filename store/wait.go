package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// [Wait] polls after firstPause, and doubles the pause up to lastPause.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// Wait waits until messages have ended, in any process, and returns them whole in the order of the
// IDs. State says how a message ended, and History why it died. A dead message has ended, also if
// its letter is redriven later.
//
// Wait polls, because no store tells other processes of an end. So it is at most a quarter of a
// second late. When ctx ends first, Wait returns the messages that it has, zero records for the
// others, and an error of CodeUnavailable. An unknown ID gets CodeNotFound. One call takes at most
// [nixie.MaxBatch] IDs.
func Wait(ctx context.Context, st Overview, ids ...nixie.ID) ([]Record, error) {
	if len(ids) > nixie.MaxBatch {
		return nil, nixie.Errorf(nixie.CodeLimit, "wait is for %d messages, the limit is %d: split it", len(ids), nixie.MaxBatch)
	}
	w := &waiting{st: st, ended: make(map[nixie.ID]Record, len(ids)), open: make(map[nixie.ID]bool, len(ids))}
	for _, id := range ids {
		w.open[id] = true
	}
	err := w.wait(ctx)
	list := make([]Record, len(ids))
	for i, id := range ids {
		list[i] = w.ended[id]
	}
	return list, err
}

// waiting is one call of Wait.
type waiting struct {
	st    Overview
	open  map[nixie.ID]bool
	ended map[nixie.ID]Record
}

func (w *waiting) wait(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := firstPause; len(w.open) > 0; pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return nixie.Errorf(nixie.CodeUnavailable, "%d of %d messages have not ended: %w",
				len(w.open), len(w.open)+len(w.ended), context.Cause(ctx))
		case <-timer.C:
		}
		if err := w.poll(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		timer.Reset(pause)
	}
	return nil
}

// poll collects the messages that have ended since the last poll.
func (w *waiting) poll(ctx context.Context) error {
	found, err := w.messages(ctx, w.open, false)
	if err != nil {
		return err
	}
	over := map[nixie.ID]bool{}
	for i := range found {
		if hasEnded(&found[i]) {
			over[found[i].ID] = true
		}
	}
	whole, err := w.messages(ctx, over, true)
	if err != nil {
		return err
	}
	missing := w.missing(found)
	for i := range whole {
		if hasEnded(&whole[i]) { // and was not redriven meanwhile
			w.ended[whole[i].ID] = whole[i]
			delete(w.open, whole[i].ID)
		}
	}
	return missing
}

func hasEnded(r *Record) bool {
	switch r.State {
	case nixie.Succeeded, nixie.Discarded, nixie.Canceled, nixie.Dead:
		return true
	}
	return false
}

func (w *waiting) missing(found []Record) error {
	here := map[nixie.ID]bool{}
	for i := range found {
		here[found[i].ID] = true
	}
	for id := range w.open {
		if !here[id] {
			return nixie.Errorf(nixie.CodeNotFound, "no message %s", id)
		}
	}
	return nil
}

// messages lists all messages of a set that exist.
func (w *waiting) messages(ctx context.Context, set map[nixie.ID]bool, whole bool) (all []Record, err error) {
	if len(set) == 0 {
		return nil, nil
	}
	var filter nixie.Filter
	for id := range set {
		filter.IDs = append(filter.IDs, id)
	}
	page := Page{Limit: len(set) + 1, Whole: whole}
	for {
		part, next, err := w.st.Messages(ctx, filter, page)
		all = append(all, part...)
		if page.Cursor = next; err != nil || next == "" {
			return all, err
		}
	}
}
