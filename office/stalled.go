package office

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// DefaultLongLeases is the default limit of [Office.Stalled], in lengths of a lease: a message that
// a worker holds longer is stalled.
const DefaultLongLeases = 20

// A queue has a retry storm when its messages were retried that often within an hour, in all and
// per retrying message.
const (
	stormAtLeast = 100
	stormEach    = 10
	stormRead    = 100 // retrying messages that are read to tell since when
)

// maxLeased limits the leased messages that a report reads.
const maxLeased = 10_000

// StallView names something that makes no progress. It is a row of stats stalled.
type StallView struct {
	What    string    `json:"what"` // lease-over, owner-gone, long-lease, breaker, unasked, paused, blocked, retry-storm
	Queue   string    `json:"queue"`
	Count   int64     `json:"count"`   // messages; for a retry storm its retries, for a breaker those that wait in its queue
	Example string    `json:"example"` // ID of one of them, "" when none is known
	Since   Timestamp `json:"since"`   // of the one that stands longest, null when unknown
	Text    string    `json:"text"`
	Fix     string    `json:"fix"`
}

// Stalled lists what makes no progress in the named queues, or in all:
//
//	lease-over   leases that have ended and that no worker claimed since
//	owner-gone   leases of a process that ended without a stop
//	long-lease   messages held for more than that many leases (0 means [DefaultLongLeases])
//	breaker      circuit breakers of workers that are not closed, one by one
//	unasked      queues with messages that no worker has ever asked for
//	paused       paused queues with messages
//	blocked      streams that a dead message blocks
//	retry-storm  queues whose messages are retried over and over
func (o *Office) Stalled(ctx context.Context, queues []string, leases int) ([]StallView, error) {
	infos, err := o.queues(ctx, queues)
	if err != nil {
		return nil, err
	}
	h, err := o.health(ctx)
	if err != nil {
		return nil, err
	}
	return o.stalled(ctx, h.Owners, infos, queues, leases)
}

// Attention is [Office.Stalled] for all queues, which the caller has just listed, and what is wrong
// with the store.
func (o *Office) Attention(ctx context.Context, all []store.QueueInfo) ([]StallView, []HealthProblem, error) {
	h, err := o.health(ctx)
	if err != nil {
		return nil, nil, err
	}
	stalls, err := o.stalled(ctx, h.Owners, all, nil, 0)
	return stalls, problemsOf(&h), err
}

func (o *Office) stalled(
	ctx context.Context, owners []store.Owner, infos []store.QueueInfo, queues []string, leases int,
) ([]StallView, error) {
	if leases == 0 {
		leases = DefaultLongLeases
	}
	list, err := o.stalledLeases(ctx, infos, owners, queues, leases)
	if err != nil {
		return nil, err
	}
	breakers, err := store.Breakers(ctx, o.store.Features().Documents, owners)
	if err != nil {
		return nil, err
	}
	list = append(list, o.breakers(infos, breakers)...)
	retrying, err := o.retrying(ctx, queues, store.ByQueue)
	if err != nil {
		return nil, err
	}
	again := store.Sizes(retrying)
	for i := range infos {
		q := &infos[i]
		if q.NeverAsked() {
			list = append(list, StallView{
				What: "unasked", Queue: q.Name, Count: q.Unfinished(), Since: Timestamp{q.OldestAt},
				Text: o.unaskedText(q), Fix: unaskedFix,
			})
		}
		if waiting := q.Unfinished() - q.Leased; q.Settings.Paused && waiting > 0 {
			since := q.Settings.PausedAt
			if since.IsZero() {
				since = q.OldestAt
			}
			list = append(list, StallView{
				What: "paused", Queue: q.Name, Count: waiting, Since: Timestamp{since},
				Text: o.wording.count(waiting, "message") + " waiting: " + q.Settings.PausedNote,
				Fix:  o.wording.say(pausedFix),
			})
		}
		b, err := o.blocked(ctx, q)
		if err != nil {
			return nil, err
		}
		if b.messages > 0 {
			list = append(list, StallView{
				What: "blocked", Queue: q.Name, Count: b.messages, Example: b.example.Head.String(), Since: Timestamp{q.BlockedAt},
				Text: b.text(o.wording) + ", one of them by " + b.example.Failure, Fix: b.fix(o.wording),
			})
		}
		if n := again[q.Name]; n > 0 && q.Retried >= stormAtLeast && q.Retried >= stormEach*n {
			row, err := o.retryStorm(ctx, q, n)
			if err != nil {
				return nil, err
			}
			list = append(list, row)
		}
	}
	return list, nil
}

const pausedFix = "see why, then {resume}"

const unaskedFix = "run a worker on the queue; if its name is misspelled, nixie message move takes the messages to the right one"

func (o *Office) unaskedText(q *store.QueueInfo) string {
	return o.wording.count(q.Unfinished(), "message") + ", and no worker has ever asked the queue for any"
}

// retryStorm makes the row of a queue with a retry storm, in which n messages still retry: one
// whose messages have all ended is over. It has lasted since the first attempt of the oldest of
// those that are read.
func (o *Office) retryStorm(ctx context.Context, q *store.QueueInfo, n int64) (StallView, error) {
	once := int64(1)
	f := nixie.Filter{Queues: []string{q.Name}, States: unfinishedStates(), Attempts: nixie.Range{Min: &once}}
	retrying, _, err := o.firstMessages(ctx, f, stormRead)
	v := StallView{
		What: "retry-storm", Queue: q.Name, Count: q.Retried,
		Text: o.wording.number(q.Retried) + " retries in the last hour, " + o.wording.count(n, "message") + " in retry now",
		Fix:  o.wording.say("see {reasons}; pause the queue, or give it a longer backoff"),
	}
	for i := range retrying {
		if r := &retrying[i]; v.Since.IsZero() || r.FirstReceivedAt.Before(v.Since.Time) {
			v.Example, v.Since = r.ID.String(), Timestamp{r.FirstReceivedAt}
		}
	}
	return v, err
}

// stalls collects stalled leases by what is wrong and by queue.
type stalls struct {
	list []*StallView
	by   map[[2]string]*StallView
}

func (s *stalls) add(what string, r *store.Record, text, fix string) {
	key := [2]string{what, r.Queue}
	v := s.by[key]
	if v == nil {
		v = &StallView{What: what, Queue: r.Queue, Text: text, Fix: fix}
		s.by[key] = v
		s.list = append(s.list, v)
	}
	v.Count++
	if v.Since.IsZero() || r.LeasedAt.Before(v.Since.Time) {
		v.Since, v.Example, v.Text = Timestamp{r.LeasedAt}, r.ID.String(), text
	}
}

// breakers lists the circuit breakers of queues that hold messages back.
func (o *Office) breakers(infos []store.QueueInfo, open []store.Breaker) (list []StallView) {
	waiting := map[string]int64{}
	for i := range infos {
		waiting[infos[i].Name] = infos[i].Unfinished() - infos[i].Leased
	}
	for _, b := range open {
		n, listed := waiting[b.Queue]
		if !listed {
			continue
		}
		list = append(list, StallView{
			What: "breaker", Queue: b.Queue, Count: n, Since: Timestamp{b.Since},
			Text: fmt.Sprintf("%s holds back %s after failures of %s: its breaker is %s%s",
				b.Owner, typeWords(b.Type), b.Reason, b.State, o.untilWords(b)),
			Fix: "look at the service that the reason names: the worker goes on by itself when it answers",
		})
	}
	return list
}

func typeWords(messageType string) string {
	if messageType == "" {
		return "messages without a type"
	}
	return "messages of type " + messageType
}

func (o *Office) untilWords(b store.Breaker) string {
	until := b.Until.Round(time.Second)
	switch left := until.Sub(o.clock()); {
	case b.Until.IsZero():
		return ""
	case o.wording == ForCommands:
		return " until " + Timestamp{until}.String()
	case left > 0: // a page has no times of day in its texts, because it does not know the zone of its reader
		return " for " + left.Round(time.Second).String() + " more"
	}
	return ""
}

func (o *Office) stalledLeases(
	ctx context.Context, infos []store.QueueInfo, owners []store.Owner, queues []string, leases int,
) ([]StallView, error) {
	gone := map[string]bool{} // owners that are known to have ended
	for _, w := range owners {
		gone[w.Name] = !w.Alive
	}
	long := map[string]time.Duration{}
	for i := range infos {
		long[infos[i].Name] = time.Duration(leases) * infos[i].Settings.LeaseOrDefault()
	}
	found, _, err := o.firstMessages(ctx, nixie.Filter{Queues: queues, States: []nixie.State{nixie.Leased}}, maxLeased)
	if err != nil {
		return nil, err
	}
	s := &stalls{list: []*StallView{}, by: map[[2]string]*StallView{}}
	now := o.clock()
	for i := range found {
		switch r := &found[i]; {
		case gone[r.LeaseOwner]:
			s.add("owner-gone", r, "held by "+r.LeaseOwner+", which ended without a stop",
				"run a worker on the queue: the next claim takes them back")
		case !r.LeaseExpiresAt.After(now):
			s.add("lease-over", r, "the lease of "+r.LeaseOwner+" is over and no worker claimed since",
				"run a worker on the queue: the next claim takes them back")
		case now.Sub(r.LeasedAt) > long[r.Queue]:
			s.add("long-lease", r, fmt.Sprintf("held by %s for longer than %d leases", r.LeaseOwner, leases),
				o.wording.say("look at what the worker does; {cancel} makes its lease void"))
		}
	}
	return values(s.list), nil
}

// health returns how the store is; of one that does not know it nothing is known.
func (o *Office) health(ctx context.Context) (store.Health, error) {
	inspect := o.store.Features().Inspect
	if inspect == nil {
		return store.Health{}, nil
	}
	return inspect(ctx)
}
