package office

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// LogEntry is an event in the history of a message. Message log prints a line for each.
type LogEntry struct {
	At     Timestamp `json:"at"`
	What   string    `json:"what"` // enqueued, received, failed, an event of the audit, or the final state
	Actor  string    `json:"actor"`
	Detail string    `json:"detail"`
}

// Log returns the events of a message in the order of time. They are its arrival, each failure, its
// death, the operators' actions on its letter, and its end.
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
		log = append(log, LogEntry{Timestamp{f.FailedAt}, "failed", f.Worker, o.wording.failureLine(&f)})
	}
	subjects := []nixie.ID{r.ID}
	letters, _, err := o.store.Letters(ctx, nixie.Filter{IDs: subjects}, store.Page{Limit: 1})
	if err != nil {
		return r, nil, err
	}
	if len(letters) > 0 {
		subjects = append(subjects, letters[0].ID)
	}
	audited, born, err := o.audited(ctx, subjects)
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

func (w Wording) failureLine(f *nixie.Failure) string {
	s := fmt.Sprintf("generation %d attempt %d, %s (%s): %s", f.Generation, f.Attempt, f.Reason, f.Class, f.Text)
	if f.Decision == nixie.Retry && !f.NextAt.IsZero() {
		return s + "; retry " + w.moment(f.NextAt, f.FailedAt)
	}
	return s + "; " + string(f.Decision)
}

// audited returns the audited actions on the subjects, and the queue of the first. A message that
// was moved has entries in more than one queue.
func (o *Office) audited(ctx context.Context, subjects []nixie.ID) (log []LogEntry, queue string, err error) {
	for e, err := range o.AllAudit(ctx, store.AuditFilter{Subjects: subjects, Oldest: true}) {
		if err != nil {
			return nil, "", err
		}
		queue = cmp.Or(queue, e.Queue)
		log = append(log, LogEntry{Timestamp{e.At}, string(e.Event), e.Actor, e.Reason})
	}
	return log, queue, nil
}
