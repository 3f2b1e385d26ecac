package office

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// mostCounted limits the suspects, and the blocked streams of a queue, that Overview counts.
const mostCounted = 1000

// Overview reads the numbers of the store from its counters, so that its cost does not grow with
// the letters.
func (o *Office) Overview(ctx context.Context) (nixie.Overview, error) {
	st := o.store
	queues, err := st.Queues(ctx, store.QueueQuery{Brief: true})
	if err != nil {
		return nixie.Overview{}, err
	}
	all := nixie.Overview{At: o.clock(), Queues: make([]nixie.QueueNumbers, len(queues))}
	by := make(map[string]*nixie.QueueNumbers, len(queues))
	for i := range queues {
		q, n := &queues[i], &all.Queues[i]
		*n = nixie.QueueNumbers{
			Name: q.Name, Ready: q.Ready, Blocked: q.Blocked, Scheduled: q.Scheduled, Leased: q.Leased, OldestReady: q.OldestAt,
			Letters: map[nixie.Status]int64{},
		}
		by[q.Name] = n
		if n.BlockedStreams, err = blockedStreams(ctx, st, q); err != nil {
			return all, err
		}
	}
	if err := countLetters(ctx, st, by); err != nil {
		return all, err
	}
	if all.Suspects, err = suspects(ctx, st); err != nil {
		return all, err
	}
	return all, inspect(ctx, st, &all)
}

// countLetters adds the letters of each queue.
func countLetters(ctx context.Context, st store.Store, by map[string]*nixie.QueueNumbers) error {
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
	groups, err := byQueue(ctx, st, true, nixie.Waiting()...)
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
	list, _, err := st.Features().Streams.Streams(ctx, store.StreamQuery{Queue: q.Name}, store.Page{Limit: mostCounted})
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
	}, store.Page{Limit: mostCounted})
	return int64(len(list)), err
}

// inspect adds the time of the store, and the processes that hold leases.
func inspect(ctx context.Context, st store.Store, o *nixie.Overview) error {
	if st.Features().Inspect == nil {
		return nil
	}
	h, err := st.Features().Inspect(ctx)
	if !h.Now.IsZero() {
		o.At = h.Now
	}
	for _, owner := range h.Owners {
		if owner.Alive && owner.Leases > 0 {
			o.Workers++
		}
	}
	return err
}
