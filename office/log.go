package office

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// LogEntry is one thing that happened to a message: a line of message log.
type LogEntry struct {
	At     Timestamp `json:"at"`
	What   string    `json:"what"` // enqueued, received, failed, an event of the audit, or the state it ended in
	Actor  string    `json:"actor"`
	Detail string    `json:"detail"`
}

// Log is the life of a message in the order of time: when it came, each failure,
// its death, what operators did with its letter, and its end.
func (o *Office) Log(ctx context.Context, arg string) (store.Record, []LogEntry, error) {
	r, err := o.Message(ctx, arg)
	if err != nil {
		return r, nil, err
	}
	log := []LogEntry{{Timestamp{r.EnqueuedAt}, "enqueued", "", ""}}
	if !r.FirstReceivedAt.IsZero() {
		log = append(log, LogEntry{Timestamp{r.FirstReceivedAt}, "received", "", "for the first time"})
	}
	if r.HistoryDropped > 0 && len(r.History) > 0 {
		log = append(log,
			LogEntry{Timestamp{r.History[0].FailedAt}, "left out", "",
				fmt.Sprintf("%d failures after the first are not kept", r.HistoryDropped)})
	}
	for _, f := range r.History {
		log = append(log, LogEntry{Timestamp{f.FailedAt}, "failed", f.Worker, failureLine(&f)})
	}
	subjects := []nixie.ID{r.ID}
	letters, _, err := o.store.Letters(ctx, nixie.Filter{IDs: subjects}, store.Page{Limit: 1})
	if err != nil {
		return r, nil, err
	}
	if len(letters) > 0 {
		subjects = append(subjects, letters[0].ID)
	}
	audited, born, err := o.done(ctx, subjects)
	if err != nil {
		return r, nil, err
	}
	log[0].Detail = "into " + cmp.Or(born, r.Queue)
	log = append(log, audited...)
	if !r.EndedAt.IsZero() && r.State != nixie.Dead && r.State != nixie.Canceled {
		log = append(log, LogEntry{Timestamp{r.EndedAt}, string(r.State), "", ""})
	}
	slices.SortStableFunc(log, func(a, b LogEntry) int { return a.At.Compare(b.At.Time) })
	return r, log, nil
}

func failureLine(f *nixie.Failure) string {
	s := fmt.Sprintf("life %d attempt %d, %s (%s): %s", f.Generation, f.Attempt, f.Reason, f.Class, f.Text)
	if f.Decision == nixie.Retry && !f.NextAt.IsZero() {
		return s + "; retry at " + Timestamp{f.NextAt}.String()
	}
	return s + "; " + string(f.Decision)
}

// done tells what was done to the subjects, and in which queue first: a message
// that was moved has entries in more than one.
func (o *Office) done(ctx context.Context, subjects []nixie.ID) (log []LogEntry, queue string, err error) {
	for e, err := range o.AllAudit(ctx, store.AuditFilter{Subjects: subjects, Oldest: true}) {
		if err != nil {
			return nil, "", err
		}
		queue = cmp.Or(queue, e.Queue)
		log = append(log, LogEntry{Timestamp{e.At}, string(e.Event), e.Actor, e.Reason})
	}
	return log, queue, nil
}
