package office

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// AttemptsView counts the messages with one number of attempts in their present generation. It is a
// row of stats retries.
type AttemptsView struct {
	Attempts int     `json:"attempts"`
	Count    int64   `json:"count"`
	Share    float64 `json:"share"`   // of all rows, 0 to 1
	Queued   int64   `json:"queued"`  // failed and wait for another attempt
	Leased   int64   `json:"leased"`  // another attempt runs
	Letters  int64   `json:"letters"` // dead, and unresolved
}

// ReasonView counts the messages whose last failure had one reason. It is a row of stats reasons.
type ReasonView struct {
	Reason   nixie.Reason `json:"reason"`
	Retrying int64        `json:"retrying"` // unfinished messages
	Letters  int64        `json:"letters"`  // unresolved letters
	Advice   string       `json:"advice"`
}

// parseAttempts reads the key of a group by attempts, which is always a number.
func parseAttempts(key string) int {
	n, err := strconv.Atoi(key)
	if err != nil {
		return 0
	}
	return n
}

// inQueues returns a filter for some queues, or for all.
func inQueues(queues []string) nixie.Filter { return nixie.Filter{Queues: queues} }

// Retries counts retrying messages and unresolved letters by their attempts.
func (o *Office) Retries(ctx context.Context, queues []string) ([]AttemptsView, error) {
	rows := map[string]*AttemptsView{}
	row := func(key string) *AttemptsView {
		if rows[key] == nil {
			rows[key] = &AttemptsView{Attempts: parseAttempts(key)}
		}
		return rows[key]
	}
	retrying, err := o.retrying(ctx, queues, store.ByAttempts)
	if err != nil {
		return nil, err
	}
	for _, t := range retrying {
		r := row(t.Key)
		r.Queued, r.Leased = t.Count-t.Leased, t.Leased
	}
	dead := inQueues(queues)
	dead.Statuses = waitingStatuses() // the message of a redriven letter counts as queued or leased
	letters, _, err := o.store.Count(ctx, dead, store.Counting{By: []store.GroupBy{store.ByAttempts}, Scan: store.ScanAll})
	if err != nil {
		return nil, err
	}
	for _, g := range letters[0] {
		row(g.Key).Letters = g.Count
	}
	list, all := []AttemptsView{}, int64(0)
	for _, r := range rows {
		r.Count = r.Queued + r.Leased + r.Letters
		all += r.Count
		list = append(list, *r)
	}
	for i := range list {
		list[i].Share = float64(list[i].Count) / float64(all)
	}
	slices.SortFunc(list, func(a, b AttemptsView) int { return cmp.Compare(a.Attempts, b.Attempts) })
	return list, nil
}

// retrying counts the messages that still retry; every named queue must exist.
func (o *Office) retrying(ctx context.Context, queues []string, by store.GroupBy) ([]store.Group, error) {
	if len(queues) > 0 {
		if _, err := o.queues(ctx, queues); err != nil {
			return nil, err
		}
	}
	lists, _, err := o.store.Count(ctx, inQueues(queues), store.Counting{By: []store.GroupBy{by}, Retrying: true})
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// RetryingIn counts the messages that wait for another attempt, by queue, most first.
func (o *Office) RetryingIn(ctx context.Context) ([]Count, error) {
	groups, err := o.retrying(ctx, nil, store.ByQueue)
	list := []Count{}
	for _, g := range groups {
		if n := g.Count - g.Leased; n > 0 {
			list = append(list, Count{g.Key, n})
		}
	}
	return list, err
}

// Reasons counts retrying messages and unresolved letters by the reason of their last failure, most
// first.
func (o *Office) Reasons(ctx context.Context, queues []string) ([]ReasonView, error) {
	rows := map[nixie.Reason]*ReasonView{}
	row := func(key string) *ReasonView {
		reason := nixie.Reason(key)
		if rows[reason] == nil {
			rows[reason] = &ReasonView{Reason: reason, Advice: o.wording.advice(reason)}
		}
		return rows[reason]
	}
	retrying, err := o.retrying(ctx, queues, store.ByReason)
	if err != nil {
		return nil, err
	}
	for _, t := range retrying {
		row(t.Key).Retrying = t.Count
	}
	letters, _, err := o.store.Count(ctx, Unresolved(inQueues(queues)),
		store.Counting{By: []store.GroupBy{store.ByReason}, Scan: store.ScanAll})
	if err != nil {
		return nil, err
	}
	for _, g := range letters[0] {
		row(g.Key).Letters = g.Count
	}
	list := []ReasonView{}
	for _, r := range rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b ReasonView) int {
		return byCount(a.Retrying+a.Letters, string(a.Reason), b.Retrying+b.Letters, string(b.Reason))
	})
	return list, nil
}

// BacklogView counts the waiting messages of a queue by when they are due. It is a row of stats
// backlog.
type BacklogView struct {
	Queue      string     `json:"queue"`
	Ready      int64      `json:"ready"`
	Blocked    int64      `json:"blocked"`
	Scheduled  int64      `json:"scheduled"`
	NextAt     Timestamp  `json:"next_at"`      // earliest time of a scheduled one
	LastAt     Timestamp  `json:"last_at"`      // latest time of a scheduled one
	OldestAt   Timestamp  `json:"oldest_at"`    // since when the longest ready message is due
	OldestAgeS *int64     `json:"oldest_age_s"` // its age in seconds
	Due        []DueCount `json:"due"`          // scheduled ones by when they are due
}

// DueCount counts the scheduled messages that are due within a time, and not within the time of the
// row before.
type DueCount struct {
	WithinS *int64 `json:"within_s"` // null: later than all others
	Count   int64  `json:"count"`
}

// Backlog counts the waiting messages of the named queues, or of all.
func (o *Office) Backlog(ctx context.Context, queues []string) ([]BacklogView, error) {
	infos, err := o.queues(ctx, queues)
	list := make([]BacklogView, 0, len(infos))
	for i := range infos {
		q := &infos[i]
		v := BacklogView{
			Queue: q.Name, Ready: q.Ready, Blocked: q.Blocked, Scheduled: q.Scheduled, NextAt: Timestamp{q.NextAt},
			LastAt:   Timestamp{q.LastAt},
			OldestAt: Timestamp{q.OldestAt}, OldestAgeS: o.ageS(q.OldestAt),
		}
		for i, end := range store.DueBands() {
			within := seconds(end)
			v.Due = append(v.Due, DueCount{&within, q.Due[i]})
		}
		v.Due = append(v.Due, DueCount{nil, q.Due[len(q.Due)-1]})
		list = append(list, v)
	}
	return list, err
}

// queues returns the named queues, or all; each named one must exist.
func (o *Office) queues(ctx context.Context, names []string) ([]store.QueueInfo, error) {
	if len(names) == 0 {
		return o.Queues(ctx)
	}
	found, err := o.store.Queues(ctx, store.QueueQuery{Names: names})
	if err != nil {
		return nil, err
	}
	var list []store.QueueInfo
	for _, name := range names {
		i := slices.IndexFunc(found, func(q store.QueueInfo) bool { return q.Name == name })
		if i < 0 {
			return nil, o.noQueue(name)
		}
		list = append(list, found[i])
	}
	return list, nil
}

// ageS returns the seconds since a time, nil for a zero time.
func (o *Office) ageS(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	age := int64(max(o.clock().Sub(at), 0) / time.Second)
	return &age
}

// unfinishedStates lists the states of messages that have not ended.
func unfinishedStates() []nixie.State { return []nixie.State{nixie.Queued, nixie.Leased} }

// firstMessages reads at most n messages that match, newest first, and reports whether there are
// more.
func (o *Office) firstMessages(ctx context.Context, f nixie.Filter, n int) ([]store.Record, bool, error) {
	list, next, err := o.store.Messages(ctx, f, store.Page{Limit: n})
	return list, next != "", err
}
