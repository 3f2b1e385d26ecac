package postgres

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// counted bounds how far back an overview counts retries and deaths.
const counted = time.Hour

// Queues implements store.Queue.
func (s *Store) Queues(ctx context.Context, look store.QueueQuery) ([]store.QueueInfo, error) {
	infos := queueInfos{}
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		if look.Names == nil {
			t.readQueues("true")
		} else {
			t.readQueues("name = any($1)", look.Names)
		}
		if err := t.send(); err != nil {
			return err
		}
		for n, q := range t.queues {
			infos[n] = &store.QueueInfo{Name: q.name, Settings: q.settings, Discards: map[nixie.Reason]int64{}}
			if !look.Settings {
				infos[n].AskedAt = lifecycle.Moment(q.asked)
			}
		}
		if look.Settings {
			return nil
		}
		t.countWaiting(infos)
		t.countEnded(infos)
		t.countRecent(infos)
		return t.send()
	})
	if err != nil {
		return nil, err
	}
	list := make([]store.QueueInfo, 0, len(infos))
	for _, info := range infos {
		list = append(list, *info)
	}
	slices.SortFunc(list, func(a, b store.QueueInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// queueInfos has the queues that are asked for, by number.
type queueInfos map[int64]*store.QueueInfo

// of returns the counts of a queue; those of a queue that is not asked for are dropped.
func (all queueInfos) of(queue int64) *store.QueueInfo {
	if all[queue] == nil {
		return &store.QueueInfo{Discards: map[nixie.Reason]int64{}}
	}
	return all[queue]
}

// The states of messages on their way, as count_waiting.sql numbers them.
const (
	waitReady = iota
	waitBlocked
	waitScheduled
	waitLeased
)

// countWaiting counts messages on their way; those that are scheduled by when they are due.
func (t *tx) countWaiting(infos queueInfos) {
	bands := store.DueBands()
	ends := eachOf(bands[:], func(d time.Duration) int64 { return int64(d) })
	t.read(func(r row) error {
		var queue, n, first, last int64
		var kind, band int
		if err := r.Scan(&queue, &kind, &band, &n, &first, &last); err != nil {
			return err
		}
		info := infos.of(queue)
		info.Total += n
		switch kind {
		case waitReady:
			info.Ready += n
			info.OldestAt = lifecycle.Moment(first)
		case waitBlocked:
			info.Blocked += n
			info.BlockedAt = lifecycle.Moment(first)
		case waitLeased:
			info.Leased += n
		case waitScheduled:
			info.Scheduled += n
			info.Due[band] += n
			if at := lifecycle.Moment(first); info.NextAt.IsZero() || at.Before(info.NextAt) {
				info.NextAt = at
			}
			if at := lifecycle.Moment(last); at.After(info.LastAt) {
				info.LastAt = at
			}
		}
		return nil
	}, "count_waiting.sql", ends, t.now)
}

// countEnded counts messages that ended, also those that are not kept any more.
func (t *tx) countEnded(infos queueInfos) {
	ended := func(info *store.QueueInfo, state string, n int64) {
		info.Total += n
		switch nixie.State(state) {
		case nixie.Succeeded:
			info.Succeeded += n
		case nixie.Discarded:
			info.Discarded += n
		case nixie.Canceled:
			info.Canceled += n
		}
	}
	t.read(func(r row) error {
		var queue, state, n int64
		var reason nixie.Reason
		if err := r.Scan(&queue, &state, &reason, &n); err != nil {
			return err
		}
		info := infos.of(queue)
		ended(info, string(lifecycle.State(int(state))), n)
		if state == lifecycle.Discarded {
			info.Discards[reason] += n
		}
		return nil
	}, "select queue, state, reason, sum(n)::bigint from @.counter group by 1, 2, 3")
	t.read(func(r row) error {
		var queue, n int64
		var what, name string
		if err := r.Scan(&queue, &what, &name, &n); err != nil {
			return err
		}
		info := infos.of(queue)
		switch what {
		case "pruned":
			info.Pruned += n
		case "purged":
			info.Purged += n
		case "discards":
			info.Discards[nixie.Reason(name)] += n
			return nil
		}
		ended(info, name, n)
		return nil
	}, "select queue, what, name, n from @.tally")
}

// countRecent counts the retries and deaths of the last hour, and the letters of the office.
func (t *tx) countRecent(infos queueInfos) {
	into := func(of func(*store.QueueInfo) *int64) func(row) error {
		return func(r row) error {
			var queue, n int64
			err := r.Scan(&queue, &n)
			*of(infos.of(queue)) = n
			return err
		}
	}
	since := t.now - int64(counted)
	t.read(into(func(i *store.QueueInfo) *int64 { return &i.Retried }),
		"select queue, count(*) from @.failure where decision = 'retry' and at > $1 group by 1", since)
	t.read(into(func(i *store.QueueInfo) *int64 { return &i.Died }),
		"select queue, sum(letters)::bigint from "+interval{since + 1, math.MaxInt64}.deaths(true)+" group by 1 having sum(letters) <> 0")
	t.read(into(func(i *store.QueueInfo) *int64 { return &i.Dead }), "count_dead.sql")
}
