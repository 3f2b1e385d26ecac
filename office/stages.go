package office

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Stage says where a message is on its way: finer than its state, because a message that is queued
// waits for one of several things.
type Stage string

// The stages. A message that is dead has a letter.
const (
	StageReady     Stage = "ready"     // queued, due, and next in its stream
	StageRunning   Stage = "running"   // leased
	StageScheduled Stage = "scheduled" // queued, and due later
	StageRetrying  Stage = "retrying"  // queued again after a failure
	StageBlocked   Stage = "blocked"   // queued and due, and another one of its stream goes first
	StageSucceeded Stage = "succeeded"
	StageDiscarded Stage = "discarded"
	StageCanceled  Stage = "canceled"
)

// Stages lists every stage once, in the order of a message's way.
func Stages() []Stage {
	return []Stage{StageReady, StageRunning, StageScheduled, StageRetrying, StageBlocked, StageSucceeded, StageDiscarded, StageCanceled}
}

// Waits reports whether messages of a stage are queued.
func (s Stage) Waits() bool {
	return s == StageReady || s == StageScheduled || s == StageRetrying || s == StageBlocked
}

// narrow adds a stage to a filter of messages, as far as a store knows it.
func (o *Office) narrow(f nixie.Filter, s Stage) (nixie.Filter, error) {
	now, once := o.clock(), int64(1)
	switch {
	case len(f.States) > 0 && s != "":
		return f, nixie.Errorf(nixie.CodeInvalid, "state: is in the filter and a state is chosen too: leave one out")
	case s == StageRunning:
		f.States = []nixie.State{nixie.Leased}
	case s == StageRetrying:
		if f.Attempts.Min == nil || *f.Attempts.Min < once {
			f.Attempts.Min = &once
		}
	case s == StageScheduled:
		if f.Due.After.Before(now) {
			f.Due.After = now
		}
	case s == StageReady || s == StageBlocked:
		f.Not = append(f.Not, nixie.Filter{Due: nixie.Times{After: now}})
	case s != "":
		f.States = []nixie.State{nixie.State(s)}
	}
	if s.Waits() {
		f.States = []nixie.State{nixie.Queued}
	}
	return f, nil
}

// Staged lists messages of a stage, or of all for "", newest first, and returns the cursor of the
// next page. It looks at the newest ones only, see [store.Page]. A page of ready or blocked
// messages may have fewer than asked for, or none, and still a cursor.
func (o *Office) Staged(ctx context.Context, f nixie.Filter, s Stage, p store.Page) ([]store.Record, string, error) {
	f, err := o.narrow(f, s)
	if err != nil {
		return nil, "", err
	}
	p.Newest = true
	list, next, err := o.store.Messages(ctx, f, p)
	if err != nil {
		return nil, "", err
	}
	switch s {
	case StageRetrying:
		list = slices.DeleteFunc(list, func(r store.Record) bool { return !r.Retrying() })
	case StageReady, StageBlocked:
		behind, err := o.behind(ctx, list)
		if err != nil {
			return nil, "", err
		}
		list = slices.DeleteFunc(list, func(r store.Record) bool { return behind[r.ID] != (s == StageBlocked) })
	}
	return list, next, nil
}

// behind returns which of some due messages wait for others of their streams. Only ordered queues
// have such.
func (o *Office) behind(ctx context.Context, list []store.Record) (map[nixie.ID]bool, error) {
	streams := o.store.Features().Streams
	behind := map[nixie.ID]bool{}
	if streams == nil {
		return behind, nil
	}
	ordered := map[string]bool{}
	heads := map[[2]string]nixie.ID{}
	for i := range list {
		m := &list[i].Message
		if m.Stream == "" || m.MayPass {
			continue
		}
		if _, known := ordered[m.Queue]; !known {
			set, err := o.QueueSettings(ctx, m.Queue)
			if err != nil {
				return nil, err
			}
			ordered[m.Queue] = set.Ordered()
		}
		at := [2]string{m.Queue, m.Stream}
		if _, known := heads[at]; !known && ordered[m.Queue] {
			s, err := store.FindStream(ctx, streams, m.Queue, m.Stream)
			if err != nil && nixie.CodeOf(err) != nixie.CodeNotFound { // it ended meanwhile
				return nil, err
			}
			heads[at] = s.Head
		}
		behind[m.ID] = ordered[m.Queue] && heads[at] != m.ID
	}
	return behind, nil
}
