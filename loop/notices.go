package loop

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// lookUp lists letters, as a store does.
type lookUp func(context.Context, nixie.Filter, store.Page) ([]nixie.Letter, string, error)

// notices hands out the notices of a mailbox in a store. It looks up the letters of each batch in
// one call, so that no handler hears of a death that is history: its letter was redriven,
// discarded, quarantined or purged since, or is about a later death.
type notices struct {
	*store.Source
	letters lookUp
	log     *slog.Logger

	mu    sync.Mutex
	known map[*nixie.Delivery]*death // in hand
}

// Receive implements [nixie.Source].
func (s *notices) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	ds, err := s.Source.Receive(ctx, want)
	if len(ds) == 0 {
		return ds, err
	}
	known, bad := s.look(ctx, ds)
	if bad != nil && ctx.Err() == nil {
		s.log.Warn("the letters of notices cannot be looked up, and handlers hear of all of them",
			"mailbox", s.Name(), "notices", len(ds), "error", bad.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, one := range known {
		s.known[d] = one
	}
	return ds, err
}

// look finds out what has become of the letters of notices. What is no notice is left out.
func (s *notices) look(ctx context.Context, ds []*nixie.Delivery) (map[*nixie.Delivery]*death, error) {
	var filter nixie.Filter
	claims := make(map[*nixie.Delivery]claim, len(ds))
	for _, d := range ds {
		if c, is := claimOf(d); is {
			claims[d] = c
			filter.IDs = append(filter.IDs, c.MessageID)
		}
	}
	if len(claims) == 0 {
		return nil, nil
	}
	letters := map[nixie.ID]*nixie.Letter{}
	for page := (store.Page{Limit: len(ds) + 1}); ; {
		list, next, err := s.letters(ctx, filter, page)
		if err != nil {
			return nil, err
		}
		for i := range list {
			letters[list[i].Message.ID] = &list[i]
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	known := make(map[*nixie.Delivery]*death, len(claims))
	for d, c := range claims {
		known[d] = c.compare(letters[c.MessageID])
	}
	return known, nil
}

// take returns what is known of the death that a delivery tells of, and forgets it.
func (s *notices) take(d *nixie.Delivery) *death {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[d]
	delete(s.known, d)
	return known
}

// claim has what a notice says of its letter.
type claim struct {
	MessageID      nixie.ID  `json:"message_id"`
	Generation     int       `json:"generation"` // 0: the moment tells which death it is
	DeadLetteredAt time.Time `json:"dead_lettered_at"`
	stored         bool      // the letter is in the store of the notice, or it is gone
}

// claimOf reads the claim of a notice. Those that a loop or a store makes are JSON, also in a
// mailbox with another codec.
func claimOf(d *nixie.Delivery) (c claim, is bool) {
	if (JSON{}).Decode(d.Body, &c) != nil || c.MessageID.IsZero() {
		return c, false
	}
	c.stored = d.Type == nixie.TypeDeadLetter && c.Generation > 0
	return c, true
}

// compare compares a notice with the letter of its message; nil is none.
func (c *claim) compare(l *nixie.Letter) *death {
	if l == nil {
		return &death{generation: c.Generation, over: c.stored}
	}
	later := l.DiedAt.After(c.DeadLetteredAt)
	if c.Generation > 0 {
		later = l.Message.Generation > c.Generation
	}
	if later {
		return &death{generation: c.Generation, over: true}
	}
	return &death{generation: l.Message.Generation, over: l.Status != nixie.StatusOpen && l.Status != nixie.StatusReview}
}
