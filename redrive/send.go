package redrive

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// group holds letters that one call of the store resolves.
type group struct {
	ids     []nixie.ID
	list    []store.Resolution
	answers chan []error
}

// group makes a group of the first of some letters, and sends those that go to a broker. A kill
// between the sending and the resolution leaves letters open that were sent. The next run sends
// them again, under the same redrive IDs. An error is about letters that are not in the group.
func (e *Engine) group(ctx context.Context, r *Result, ids []nixie.ID) (g *group, taken int, err error) {
	died, err := e.diedOf(ctx, r, ids)
	switch {
	case err != nil:
		return &group{}, 0, err
	case e.sends(r):
		g, taken, err = e.sendGroup(ctx, r, ids)
	case e.c.Edit != nil && r.Event == store.OnRedrive:
		g, taken, err = e.editGroup(ctx, r, ids)
	default:
		g, taken = &group{ids: ids}, len(ids)
		for _, id := range ids {
			g.list = append(g.list, e.resolution(r, id))
		}
	}
	for i := range g.list {
		g.list[i].Group = died[g.list[i].Letter]
	}
	return g, taken, err
}

// sends reports whether letters go to a broker.
func (e *Engine) sends(r *Result) bool { return e.c.Send != nil && r.Event == store.OnRedrive }

// resolve begins to resolve a group. The end of ctx does not interrupt it, so that its outcome is
// known.
func (e *Engine) resolve(ctx context.Context, g *group) {
	g.answers = make(chan []error, 1)
	go func() {
		ctx, cancel := outlast(ctx, grace)
		defer cancel()
		g.answers <- e.c.Store.Resolve(ctx, g.list)
	}()
}

// complete waits until a group is resolved and counts it; nil is no group.
func (e *Engine) complete(r *Result, g *group) error {
	if g == nil {
		return nil
	}
	if err := r.count(g.ids, <-g.answers); err != nil {
		return err
	}
	if e.c.Progress != nil {
		e.c.Progress(r.Operation)
	}
	return nil
}

// sendGroup sends letters to a broker. No queue of the store gets them.
func (e *Engine) sendGroup(ctx context.Context, r *Result, ids []nixie.ID) (*group, int, error) {
	ids, letters, err := e.read(ctx, ids)
	if err != nil {
		return &group{}, 0, err
	}
	why := make(map[nixie.ID]string) // why letters stay
	out := make([]nixie.Letter, 0, len(ids))
	for _, id := range ids {
		l := letters[id]
		if l == nil {
			why[id] = "letter " + id.String() + " is gone"
			continue
		}
		if refusal := e.Refusal(&r.Operation, l); refusal != "" {
			why[id] = "letter " + id.String() + " " + refusal
			continue
		}
		if !e.overCap(l) { // no operation has sent a letter that is put aside
			l.Operation = r.ID
		}
		out = append(out, *l)
	}
	unknown := map[nixie.ID]bool{} // their outcome
	for i, failed := range e.c.Send(ctx, out) {
		switch {
		case failed == nil && e.overCap(&out[i]):
			r.Quarantined++
		case failed == nil:
		case Refuses(failed):
			why[out[i].ID] = failed.Error()
		default:
			err, unknown[out[i].ID] = failed, true
			if unanswered(failed) {
				r.Unanswered++
			}
		}
	}
	g := &group{}
	for _, id := range ids {
		if unknown[id] {
			continue
		}
		to := e.resolution(r, id)
		to.Event, to.Skip = store.OnConfirm, why[id]
		g.ids, g.list = append(g.ids, id), append(g.list, to)
	}
	return g, len(ids), err
}

// read reads the first of some letters with their bodies: all, or as many as fit into a page. If
// letters may be put aside, it also reads all their failures.
func (e *Engine) read(ctx context.Context, ids []nixie.ID) ([]nixie.ID, map[nixie.ID]*nixie.Letter, error) {
	page := store.Page{Limit: len(ids) + 1, Bodies: true, Whole: e.c.SetsAside}
	for {
		list, next, err := e.c.Store.Letters(ctx, nixie.Filter{IDs: ids}, page)
		if err != nil {
			return nil, nil, err
		}
		if next != "" && len(ids) > 1 {
			ids = ids[:len(ids)/2]
			continue
		}
		letters := make(map[nixie.ID]*nixie.Letter, len(list))
		for i := range list {
			letters[list[i].ID] = &list[i]
		}
		if page.Cursor = next; next == "" || len(list) > 0 {
			return ids, letters, nil
		}
	}
}

// Refusal returns the reason why Run would leave a letter as it is, as the end of a sentence, or
// "". It does not check whether a message holds the dedupe key that the letter needs.
func (e *Engine) Refusal(op *store.Operation, l *nixie.Letter) string {
	r := store.Resolution{Event: op.Event, Force: op.Force || e.c.Force, MaxRedrives: e.c.MaxRedrives,
		ExpiresIn: e.expiresIn(op.Event), Statuses: op.Statuses}
	if e.c.SetsAside {
		r.MaxRedrives = 0
	}
	facts := lifecycle.Of(l, e.c.Clock())
	if facts.Expired && e.c.Send != nil && op.Event == store.OnRedrive {
		if !r.Force {
			return "has expired, and a broker keeps no expiry: use force to send it all the same"
		}
		facts.Expired = false
	}
	_, why := lifecycle.Why(facts, &r)
	if never := l.Message.Header(broker.HeaderNeverRan); e.c.Send != nil && op.Event == store.OnRedrive && never != "" && !l.Redrivable {
		return "never ran: " + never
	}
	if left := l.Message.Header(broker.HeaderReview); why != "" && l.NeedsReview && left != "" {
		return why + ": " + left
	}
	if why != "" {
		return why
	}
	if (e.c.Send != nil || e.c.Edit != nil) && len(l.Damage) > 0 {
		return "is damaged: " + l.Damage[0]
	}
	return ""
}

// overCap reports whether a letter was redriven too often.
func (e *Engine) overCap(l *nixie.Letter) bool {
	return e.c.MaxRedrives > 0 && l.Message.Redrives >= e.c.MaxRedrives
}
