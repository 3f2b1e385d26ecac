package office

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// PoisonAttempts is the default number of attempts that makes a message a candidate for poison.
const PoisonAttempts = 10

const (
	sameAtLeast       = 3     // failures before "the same every time" means anything
	maxCandidatesEach = 1_000 // messages or streams that each test reads
)

// PoisonView shows a candidate for poison. It is a row of stats poison.
type PoisonView struct {
	MessageID   nixie.ID     `json:"message_id"`
	LetterID    string       `json:"letter_id"` // of a dead head of a stream, otherwise ""
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
	Why         []string     `json:"why"` // attempts, crashes, same-reason, blocks-stream; each with its number
}

func values[T any](list []*T) []T {
	vs := make([]T, 0, len(list))
	for _, p := range list {
		vs = append(vs, *p)
	}
	return vs
}

// candidates collects messages, each once.
type candidates struct {
	list []*PoisonView
	by   map[nixie.ID]*PoisonView
}

func (s *candidates) add(r *store.Record, why string) {
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

// Poison lists unfinished messages that will probably never succeed, most attempts first. Each of
// these tests reads at most a thousand; if there are more, it reports so.
//
//	attempts       the message has at least that many (0 means [PoisonAttempts])
//	crashes        a worker vanished while it held the message
//	same-reason    three or more failures in this generation, all of one reason
//	blocks-stream  messages of its stream wait for it
func (o *Office) Poison(ctx context.Context, queues []string, attempts int) (list []PoisonView, more bool, err error) {
	infos, err := o.queues(ctx, queues)
	if err != nil {
		return nil, false, err
	}
	if attempts == 0 {
		attempts = PoisonAttempts
	}
	least, one := int64(attempts), int64(1)
	s := &candidates{list: []*PoisonView{}, by: map[nixie.ID]*PoisonView{}}
	for _, kind := range [...]func() (bool, error){
		func() (bool, error) {
			return o.addMatching(ctx, s, nixie.Filter{Queues: queues, Attempts: nixie.Range{Min: &least}},
				func(r *store.Record) string { return fmt.Sprintf("attempts %d", r.Attempts) })
		},
		func() (bool, error) {
			return o.addMatching(ctx, s, nixie.Filter{Queues: queues, Crashes: nixie.Range{Min: &one}},
				func(r *store.Record) string { return fmt.Sprintf("crashes %d", r.Crashes) })
		},
		func() (bool, error) { return o.addSameReason(ctx, s, queues) },
		func() (bool, error) { return o.addBlocking(ctx, s, infos) },
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

// addMatching adds the first unfinished messages that match.
func (o *Office) addMatching(ctx context.Context, s *candidates, f nixie.Filter, why func(*store.Record) string) (bool, error) {
	f.States = unfinishedStates()
	list, more, err := o.firstMessages(ctx, f, maxCandidatesEach)
	for i := range list {
		s.add(&list[i], why(&list[i]))
	}
	return more, err
}

func (o *Office) addSameReason(ctx context.Context, s *candidates, queues []string) (bool, error) {
	least := int64(sameAtLeast)
	seen := 0
	for r, err := range o.wholeMessages(ctx, nixie.Filter{Queues: queues, States: unfinishedStates(), Attempts: nixie.Range{Min: &least}}) {
		if err != nil {
			return false, err
		}
		if seen++; seen > maxCandidatesEach {
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

// sameReason counts the failures of this generation; it returns 0 when their reasons differ.
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

// addBlocking adds the heads of streams that wait for a retry or are dead while others wait for
// them.
func (o *Office) addBlocking(ctx context.Context, s *candidates, infos []store.QueueInfo) (bool, error) {
	for i := range infos {
		if !infos[i].Settings.Ordered() {
			continue
		}
		list, next, err := o.Streams(ctx, infos[i].Name, store.Page{Limit: maxCandidatesEach})
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
