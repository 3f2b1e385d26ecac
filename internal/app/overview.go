package app

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/telemetry"
)

// Numbers has the numbers of a store at a moment.
type Numbers = telemetry.Overview

// most limits the suspects and the blocked streams of a queue that Overview counts.
const most = 1000

// Overview reads the numbers of a store from its counters, so that its cost does not grow with the
// letters.
func Overview(ctx context.Context, st store.Store) (Numbers, error) {
	queues, err := st.Queues(ctx, store.QueueQuery{Brief: true})
	if err != nil {
		return Numbers{}, err
	}
	o := Numbers{Queues: make([]telemetry.QueueNumbers, len(queues))}
	by := make(map[string]*telemetry.QueueNumbers, len(queues))
	for i := range queues {
		q, n := &queues[i], &o.Queues[i]
		*n = telemetry.QueueNumbers{
			Name: q.Name, Ready: q.Ready, Blocked: q.Blocked, Scheduled: q.Scheduled, Leased: q.Leased, OldestReady: q.OldestAt,
			Letters: map[nixie.Status]int64{},
		}
		by[q.Name] = n
		if n.BlockedStreams, err = blockedStreams(ctx, st, q); err != nil {
			return o, err
		}
	}
	if err := countLetters(ctx, st, by); err != nil {
		return o, err
	}
	if o.Suspects, err = suspects(ctx, st); err != nil {
		return o, err
	}
	return o, inspect(ctx, st, &o)
}

// countLetters adds the letters of each queue.
func countLetters(ctx context.Context, st store.Store, by map[string]*telemetry.QueueNumbers) error {
	statuses, _, err := st.Count(ctx, nixie.Filter{Statuses: nixie.Statuses()}, store.Counting{By: []store.GroupBy{store.ByStatus}})
	if err != nil {
		return err
	}
	for _, has := range statuses[0] {
		status := nixie.Status(has.Key)
		groups, err := byQueue(ctx, st, false, status)
		if err != nil {
			return err
		}
		for _, g := range groups {
			if n := by[g.Key]; n != nil { // the queue may be new
				n.Letters[status] = g.Count
			}
		}
	}
	groups, err := byQueue(ctx, st, true, telemetry.Waiting()...)
	for _, g := range groups {
		if n := by[g.Key]; n != nil {
			n.OldestLetter = g.FirstAt
		}
	}
	return err
}

func byQueue(ctx context.Context, st store.Store, described bool, statuses ...nixie.Status) ([]store.Group, error) {
	of := store.Counting{By: []store.GroupBy{store.ByQueue}, Described: described}
	lists, _, err := st.Count(ctx, nixie.Filter{Statuses: statuses}, of)
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// blockedStreams counts the streams of a queue that a dead message blocks.
func blockedStreams(ctx context.Context, st store.Store, q *store.QueueInfo) (n int64, err error) {
	if q.Blocked == 0 || !q.Settings.Ordered() {
		return 0, nil
	}
	list, _, err := st.Features().Streams.Streams(ctx, store.StreamQuery{Queue: q.Name}, store.Page{Limit: most})
	for i := range list {
		if list[i].State == store.StreamBlocked && list[i].Followers > 0 {
			n++
		}
	}
	return n, err
}

// suspects counts unfinished messages whose holders vanished.
func suspects(ctx context.Context, st store.Store) (int64, error) {
	one := int64(1)
	list, _, err := st.Messages(ctx, nixie.Filter{
		States: []nixie.State{nixie.Queued, nixie.Leased}, Crashes: nixie.Range{Min: &one},
	}, store.Page{Limit: most})
	return int64(len(list)), err
}

// inspect adds the time of the store, and the processes that hold leases.
func inspect(ctx context.Context, st store.Store, o *Numbers) error {
	if st.Features().Inspect == nil {
		return nil
	}
	h, err := st.Features().Inspect(ctx)
	o.At = h.Now
	for _, owner := range h.Owners {
		if owner.Alive && owner.Leases > 0 {
			o.Workers++
		}
	}
	return err
}
