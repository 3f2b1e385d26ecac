package office

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

// Thresholds are the limits that Check compares queues with. Check skips a nil or zero one.
type Thresholds struct {
	Queues    []string      // each must exist; none means all
	Depth     *int64        // messages that are due and not claimed
	Age       time.Duration // since the message that waits longest, ready or blocked, became due
	Deaths    *int64        // deaths within the last Interval
	Interval  time.Duration // required with Deaths
	Letters   *int64        // letters that wait for an operator
	LetterAge time.Duration // since the oldest of them died
}

// groups are letters by queue.
type groups map[string]store.Group

// CheckView shows the outcome of a check. Nixie check prints it.
type CheckView struct {
	OK      bool         `json:"ok"`
	Queues  int          `json:"queues"` // that were compared
	Exceeds []ExceedView `json:"exceeds"`
}

// ExceedView is a threshold that a queue is over.
type ExceedView struct {
	Queue  string `json:"queue"`
	Check  string `json:"check"` // depth, age, rate, letters, letter_age
	Value  int64  `json:"value"` // a count, or seconds
	Limit  int64  `json:"limit"`
	Text   string `json:"text"`
	Filter string `json:"filter"`  // selects the messages or letters counted
	About  string `json:"subject"` // message or letter
}

// Check compares each queue with the thresholds.
func (o *Office) Check(ctx context.Context, t Thresholds) (CheckView, error) {
	v := CheckView{Exceeds: []ExceedView{}}
	infos, err := o.queues(ctx, t.Queues)
	if err != nil {
		return v, err
	}
	var died, waiting groups
	if t.Deaths != nil {
		if died, err = o.byQueue(ctx, nixie.Filter{Queues: t.Queues, Died: nixie.Times{After: o.clock().Add(-t.Interval)}}); err != nil {
			return v, err
		}
	}
	if t.LetterAge > 0 {
		if waiting, err = o.byQueue(ctx, nixie.Filter{Queues: t.Queues, Statuses: waitingStatuses()}); err != nil {
			return v, err
		}
	}
	v.Queues = len(infos)
	for i := range infos {
		q := &infos[i]
		e := exceeding{queue: q.Name, list: v.Exceeds}
		e.messages(q, o.ageS(q.OldestAt), o.ageS(q.BlockedAt), &t)
		e.letters(q.Dead, died[q.Name].Count, o.ageS(waiting[q.Name].FirstAt), o.clock(), &t)
		v.Exceeds = e.list
	}
	v.OK = len(v.Exceeds) == 0
	return v, nil
}

// waitingStatuses lists the statuses in which a letter waits for an operator.
func waitingStatuses() []nixie.Status {
	return []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
}

func (o *Office) byQueue(ctx context.Context, f nixie.Filter) (groups, error) {
	lists, _, err := o.store.Count(ctx, f, store.Counting{By: []store.GroupBy{store.ByQueue}, Scan: store.ScanAll, Described: true})
	if err != nil {
		return nil, err
	}
	by := groups{}
	for _, g := range lists[0] {
		by[g.Key] = g
	}
	return by, nil
}

// exceeding collects the thresholds that a queue is over.
type exceeding struct {
	queue string
	list  []ExceedView
}

func (e *exceeding) add(check, about string, value, limit int64, f nixie.Filter, text string) {
	f.Queues = []string{e.queue}
	e.list = append(e.list,
		ExceedView{Queue: e.queue, Check: check, Value: value, Limit: limit, Text: text, Filter: filter.Text(f), About: about})
}

func (e *exceeding) messages(q *store.QueueInfo, age, blocked *int64, t *Thresholds) {
	waiting := nixie.Filter{States: []nixie.State{nixie.Queued}}
	if depth := q.Ready + q.Blocked; t.Depth != nil && depth > *t.Depth {
		e.add("depth", "message", depth, *t.Depth, waiting,
			fmt.Sprintf("%s due and waiting, more than %d", countText(depth, "message"), *t.Depth))
	}
	if older(age, t.Age) {
		e.add("age", "message", *age, seconds(t.Age), waiting,
			fmt.Sprintf("the message that has been ready longest became due %s ago, more than %s", duration(*age), t.Age))
	}
	if older(blocked, t.Age) {
		e.add("age", "message", *blocked, seconds(t.Age), waiting,
			fmt.Sprintf("the message that waits longest behind others of its stream became due %s ago, more than %s", duration(*blocked),
				t.Age))
	}
}

func (e *exceeding) letters(dead, died int64, age *int64, now time.Time, t *Thresholds) {
	waiting := nixie.Filter{Statuses: waitingStatuses()}
	if t.Deaths != nil && died > *t.Deaths {
		lately := nixie.Filter{Died: nixie.Times{After: now.Add(-t.Interval)}}
		e.add("rate", "letter", died, *t.Deaths, lately,
			fmt.Sprintf("%s within %s, more than %d", countText(died, "death"), t.Interval, *t.Deaths))
	}
	if t.Letters != nil && dead > *t.Letters {
		e.add("letters", "letter", dead, *t.Letters, waiting,
			fmt.Sprintf("%s waiting for an operator, more than %d", countText(dead, "letter"), *t.Letters))
	}
	if older(age, t.LetterAge) {
		e.add("letter_age", "letter", *age, seconds(t.LetterAge), waiting,
			fmt.Sprintf("the oldest letter died %s ago, more than %s", duration(*age), t.LetterAge))
	}
}

func older(age *int64, limit time.Duration) bool {
	return limit > 0 && age != nil && duration(*age) > limit
}

func duration(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// countText writes a count with its noun.
func countText(n int64, noun string) string { return ForCommands.count(n, noun) }
