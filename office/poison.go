package office

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// PoisonAttempts is from how many attempts on a message is a candidate for
// poison.
const PoisonAttempts = 10

const (
	sameAtLeast = 3     // failures before "the same every time" means anything
	maxSuspects = 1_000 // candidates of one kind that are looked at
)

// PoisonView is a candidate for poison: a row of stats poison.
type PoisonView struct {
	MessageID   nixie.ID     `json:"message_id"`
	LetterID    string       `json:"letter_id"` // of a dead head of a stream, else ""
	Key         string       `json:"key"`
	Queue       string       `json:"queue"`
	Type        string       `json:"type"`
	Stream      string       `json:"stream"`
	State       nixie.State  `json:"state"`
	Attempts    int          `json:"attempts"`
	Crashes     int          `json:"crashes"`
	NotBefore   Timestamp    `json:"not_before"`
	LastReason  nixie.Reason `json:"last_reason"`
	LastFailure string       `json:"last_failure"`
	Why         []string     `json:"why"` // attempts, crashes, same-reason, blocks-stream; with its number
}

func values[T any](list []*T) []T {
	vs := make([]T, 0, len(list))
	for _, p := range list {
		vs = append(vs, *p)
	}
	return vs
}

// suspects collects candidates, each once.
type suspects struct {
	list []*PoisonView
	by   map[nixie.ID]*PoisonView
}

func (s *suspects) add(r *store.Record, why string) {
	v := s.by[r.ID]
	if v == nil {
		v = &PoisonView{
			MessageID: r.ID, Key: r.Key, Queue: r.Queue, Type: r.Type, Stream: r.Stream, State: r.State, Attempts: r.Attempts,
			Crashes:   r.Crashes,
			NotBefore: dueAt(&r.Message), LastReason: r.LastReason, LastFailure: r.LastFailure,
		}
		s.by[r.ID] = v
		s.list = append(s.list, v)
	}
	v.Why = append(v.Why, why)
}

// Poison lists messages on their way that look as if they will never succeed,
// most attempts first: those with many attempts (0 is [PoisonAttempts]), those
// whose holders vanished, those that failed three times or more in this life and
// always of the same reason, and the heads of streams that hold up others. Of
// each kind at most a thousand are looked at; then it reports that there are
// more.
func (o *Office) Poison(ctx context.Context, queues []string, attempts int) (list []PoisonView, more bool, err error) {
	infos, err := o.queues(ctx, queues)
	if err != nil {
		return nil, false, err
	}
	if attempts == 0 {
		attempts = PoisonAttempts
	}
	s := &suspects{list: []*PoisonView{}, by: map[nixie.ID]*PoisonView{}}
	for _, kind := range [...]func() (bool, error){
		func() (bool, error) { return o.oftenTried(ctx, s, queues, attempts) },
		func() (bool, error) { return o.crashed(ctx, s, queues) },
		func() (bool, error) { return o.alwaysTheSame(ctx, s, queues) },
		func() (bool, error) { return o.blocking(ctx, s, infos) },
	} {
		cut, err := kind()
		if err != nil {
			return nil, more, err
		}
		more = more || cut
	}
	slices.SortStableFunc(s.list, func(a, b *PoisonView) int { return b.Attempts - a.Attempts })
	return values(s.list), more, nil
}

func (o *Office) oftenTried(ctx context.Context, s *suspects, queues []string, attempts int) (bool, error) {
	least := int64(attempts)
	list, more, err := o.some(ctx, nixie.Filter{Queues: queues, States: onTheirWay(), Attempts: nixie.Range{Min: &least}}, maxSuspects)
	for i := range list {
		s.add(&list[i], fmt.Sprintf("attempts %d", list[i].Attempts))
	}
	return more, err
}

func (o *Office) crashed(ctx context.Context, s *suspects, queues []string) (bool, error) {
	one := int64(1)
	list, more, err := o.some(ctx, nixie.Filter{Queues: queues, States: onTheirWay(), Crashes: nixie.Range{Min: &one}}, maxSuspects)
	for i := range list {
		s.add(&list[i], fmt.Sprintf("crashes %d", list[i].Crashes))
	}
	return more, err
}

func (o *Office) alwaysTheSame(ctx context.Context, s *suspects, queues []string) (bool, error) {
	least := int64(sameAtLeast)
	seen := 0
	for r, err := range o.wholeMessages(ctx, nixie.Filter{Queues: queues, States: onTheirWay(), Attempts: nixie.Range{Min: &least}}) {
		if err != nil {
			return false, err
		}
		if seen++; seen > maxSuspects {
			return true, nil
		}
		if n := sameReason(&r); n >= sameAtLeast {
			s.add(&r, fmt.Sprintf("same-reason %d", n))
		}
	}
	return false, nil
}

func (o *Office) wholeMessages(ctx context.Context, f nixie.Filter) iter.Seq2[store.Record, error] {
	return all(true, func(p store.Page) ([]store.Record, string, error) { return o.store.Messages(ctx, f, p) })
}

// sameReason counts the failures of this life, 0 when their reasons differ.
func sameReason(r *store.Record) (n int) {
	for i := range r.History {
		f := &r.History[i]
		if f.Generation != r.Generation {
			continue
		}
		if f.Reason != r.LastReason {
			return 0
		}
		n++
	}
	return n
}

// blocking adds the heads of streams that others wait for while they wait for a
// retry or are dead.
func (o *Office) blocking(ctx context.Context, s *suspects, infos []nixie.QueueInfo) (bool, error) {
	for i := range infos {
		if !infos[i].Settings.Ordered() {
			continue
		}
		list, next, err := o.Streams(ctx, infos[i].Name, store.Page{Limit: maxSuspects})
		if err != nil {
			return false, err
		}
		for _, st := range list {
			waits := st.State == store.StreamBlocked || st.State == store.StreamWaiting && st.Attempts > 0
			if !waits || st.Followers == 0 {
				continue
			}
			head, err := o.wholeMessage(ctx, st.Head)
			if err != nil {
				return false, err
			}
			s.add(&head, fmt.Sprintf("blocks-stream %d", st.Followers))
			if !st.Letter.IsZero() {
				s.by[head.ID].LetterID = st.Letter.String()
			}
		}
		if next != "" {
			return true, nil
		}
	}
	return false, nil
}
