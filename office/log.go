package office

import (
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// LogEntry is one thing that happened to a message: a line of message log.
type LogEntry struct {
	At     Moment `json:"at"`
	What   string `json:"what"` // enqueued, received, failed, an event of the audit, or the state it ended in
	Actor  string `json:"actor"`
	Detail string `json:"detail"`
}

// Log is the life of a message in the order of time: when it came, each failure,
// its death, what operators did with its letter, and its end.
func (o *Office) Log(ctx context.Context, arg string) (store.Record, []LogEntry, error) {
	r, err := o.Message(ctx, arg)
	if err != nil {
		return r, nil, err
	}
	log := []LogEntry{{Moment{r.EnqueuedAt}, "enqueued", "", "into " + r.Queue}}
	if !r.FirstReceivedAt.IsZero() {
		log = append(log, LogEntry{Moment{r.FirstReceivedAt}, "received", "", "for the first time"})
	}
	if r.HistoryDropped > 0 && len(r.History) > 0 {
		log = append(log, LogEntry{Moment{r.History[0].FailedAt}, "left out", "", fmt.Sprintf("%d failures after the first are not kept", r.HistoryDropped)})
	}
	for _, f := range r.History {
		log = append(log, LogEntry{Moment{f.FailedAt}, "failed", f.Worker, failureLine(&f)})
	}
	subjects := []nixie.ID{r.ID}
	letters, _, err := o.store.Letters(ctx, nixie.Filter{IDs: subjects}, store.Page{Limit: 1})
	if err != nil {
		return r, nil, err
	}
	if len(letters) > 0 {
		subjects = append(subjects, letters[0].ID)
	}
	audited, err := o.audit(ctx, r.Queue, subjects)
	if err != nil {
		return r, nil, err
	}
	log = append(log, audited...)
	if !r.EndedAt.IsZero() && r.State != nixie.Dead && r.State != nixie.Canceled {
		log = append(log, LogEntry{Moment{r.EndedAt}, string(r.State), "", ""})
	}
	slices.SortStableFunc(log, func(a, b LogEntry) int { return a.At.Compare(b.At.Time) })
	return r, log, nil
}

func failureLine(f *nixie.Failure) string {
	s := fmt.Sprintf("life %d attempt %d, %s (%s): %s", f.Generation, f.Attempt, f.Reason, f.Class, f.Text)
	if f.Decision == nixie.Retry && !f.NextAt.IsZero() {
		return s + "; retry at " + Moment{f.NextAt}.String()
	}
	return s + "; " + string(f.Decision)
}

// audit reads the chain of a queue for what was done to the subjects.
func (o *Office) audit(ctx context.Context, queue string, subjects []nixie.ID) ([]LogEntry, error) {
	var log []LogEntry
	entries := all(false, func(p store.Page) ([]store.AuditEntry, string, error) { return o.store.Entries(ctx, queue, p) })
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if slices.Contains(subjects, e.Subject) {
			log = append(log, LogEntry{Moment{e.At}, string(e.Event), e.Actor, e.Reason})
		}
	}
	return log, nil
}
