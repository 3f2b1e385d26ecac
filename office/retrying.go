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

// AttemptsView is a row of stats retries: how many messages have begun so many
// attempts in their present life.
type AttemptsView struct {
	Attempts int     `json:"attempts"`
	Count    int64   `json:"count"`
	Share    float64 `json:"share"`   // of all rows, 0 to 1
	Queued   int64   `json:"queued"`  // failed and wait for another attempt
	Leased   int64   `json:"leased"`  // another attempt runs
	Letters  int64   `json:"letters"` // dead, and unresolved
}

// ReasonView is a row of stats reasons: what messages failed of last.
type ReasonView struct {
	Reason   nixie.Reason `json:"reason"`
	Retrying int64        `json:"retrying"` // messages on their way
	Letters  int64        `json:"letters"`  // unresolved letters
	Advice   string       `json:"advice"`
}

// attempts is the key of a tally by attempts; the stores make numbers only.
func attempts(key string) int {
	n, err := strconv.Atoi(key)
	if err != nil {
		return 0
	}
	return n
}

// of is a filter for the messages or letters of some queues, or of all.
func of(queues []string) nixie.Filter { return nixie.Filter{Queues: queues} }

// Retries is the distribution of attempts over messages that still retry and
// unresolved letters.
func (o *Office) Retries(ctx context.Context, queues []string) ([]AttemptsView, error) {
	rows := map[string]*AttemptsView{}
	row := func(key string) *AttemptsView {
		if rows[key] == nil {
			rows[key] = &AttemptsView{Attempts: attempts(key)}
		}
		return rows[key]
	}
	retrying, err := o.retrying(ctx, queues, nixie.ByAttempts)
	if err != nil {
		return nil, err
	}
	for _, t := range retrying {
		r := row(t.Key)
		r.Queued, r.Leased = t.Count-t.Leased, t.Leased
	}
	dead := of(queues)
	dead.Statuses = waitingLetters() // the message of a redriven letter is on its way, and counted there
	letters, _, err := o.store.Count(ctx, dead, store.Counting{By: []nixie.GroupBy{nixie.ByAttempts}, Look: store.LookAtAll})
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

// retrying counts messages that still retry; every named queue has to exist.
func (o *Office) retrying(ctx context.Context, queues []string, by nixie.GroupBy) ([]nixie.Group, error) {
	if _, err := o.queues(ctx, queues); err != nil {
		return nil, err
	}
	lists, _, err := o.store.Count(ctx, of(queues), store.Counting{By: []nixie.GroupBy{by}, Retrying: true})
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// Reasons puts the last failures of messages that still retry beside those of
// unresolved letters, most first.
func (o *Office) Reasons(ctx context.Context, queues []string) ([]ReasonView, error) {
	rows := map[nixie.Reason]*ReasonView{}
	row := func(key string) *ReasonView {
		reason := nixie.Reason(key)
		if rows[reason] == nil {
			rows[reason] = &ReasonView{Reason: reason, Advice: Advice(reason)}
		}
		return rows[reason]
	}
	retrying, err := o.retrying(ctx, queues, nixie.ByReason)
	if err != nil {
		return nil, err
	}
	for _, t := range retrying {
		row(t.Key).Retrying = t.Count
	}
	letters, _, err := o.store.Count(ctx, Unresolved(of(queues)),
		store.Counting{By: []nixie.GroupBy{nixie.ByReason}, Look: store.LookAtAll})
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

// BacklogView is a row of stats backlog: what waits in a queue, and for when.
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

// DueCount is how many scheduled messages are due within a time, and not within
// the one before it.
type DueCount struct {
	WithinS *int64 `json:"within_s"` // null: later than all others
	Count   int64  `json:"count"`
}

// Backlog shows what waits in the named queues, or in all.
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
		for i, end := range nixie.DueBands() {
			within := seconds(end)
			v.Due = append(v.Due, DueCount{&within, q.Due[i]})
		}
		v.Due = append(v.Due, DueCount{nil, q.Due[len(q.Due)-1]})
		list = append(list, v)
	}
	return list, err
}

// queues are the named ones, each of which has to exist, or all.
func (o *Office) queues(ctx context.Context, names []string) ([]nixie.QueueInfo, error) {
	if len(names) == 0 {
		return o.Queues(ctx)
	}
	found, err := o.store.Queues(ctx, store.QueueLook{Names: names})
	if err != nil {
		return nil, err
	}
	var list []nixie.QueueInfo
	for _, name := range names {
		i := slices.IndexFunc(found, func(q nixie.QueueInfo) bool { return q.Name == name })
		if i < 0 {
			return nil, noQueue(name)
		}
		list = append(list, found[i])
	}
	return list, nil
}

// ageS is how many seconds ago something was, nil if it never was.
func (o *Office) ageS(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	age := int64(max(o.clock().Sub(at), 0) / time.Second)
	return &age
}

// onTheirWay are the states of messages that have not ended.
func onTheirWay() []nixie.State { return []nixie.State{nixie.Queued, nixie.Leased} }

// some reads at most n messages that match, newest first, and whether there are
// more.
func (o *Office) some(ctx context.Context, f nixie.Filter, n int) ([]store.Record, bool, error) {
	list, next, err := o.store.Messages(ctx, f, store.Page{Limit: n})
	return list, next != "", err
}
