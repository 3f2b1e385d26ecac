package redrive

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// officeCopies is an office that may have the letters of a channel too. A move does not send
// letters that were redriven there, and resolves there the letters that it sends.
type officeCopies struct {
	store.DeadLetters
	actor, reason string
}

// compare takes two groups of letters out of a part. Those that the office has redriven count as
// done. Those that it has discarded or quarantined stay.
func (o *officeCopies) compare(ctx context.Context, p *part, done *Moved) error {
	there := map[nixie.ID]*nixie.Letter{}
	for ids := range slices.Chunk(p.letters(), MaxBatch) {
		list, _, err := o.Letters(ctx, nixie.Filter{IDs: ids}, store.Page{Limit: len(ids) + 1})
		if err != nil {
			return err
		}
		for i := range list {
			there[list[i].ID] = &list[i]
		}
	}
	if len(there) == 0 {
		return nil
	}
	list, chosen := p.list[:0], p.chosen[:0]
	for i, back := range p.list {
		l := there[back.Letter]
		if l != nil && back.Origin.Database != "" && l.Status.Unresolved() && l.Status != nixie.StatusRedriving {
			back.Redrives = l.Message.Redrives // a death of a job has its own letter, which knows of those before
		}
		switch {
		case l == nil:
		case l.Message.Redrives > back.Redrives:
			p.elsewhere = append(p.elsewhere, p.chosen[i])
			continue
		case l.Status == nixie.StatusQuarantined, l.Status == nixie.StatusDiscarded:
			done.skip(back.Letter, "letter "+back.Letter.String()+" is "+string(l.Status)+" in the office")
			continue
		default:
			p.here = append(p.here, back.Letter)
		}
		list, chosen = append(list, back), append(chosen, p.chosen[i])
	}
	p.list, p.chosen = list, chosen
	done.Elsewhere += int64(len(p.elsewhere))
	return nil
}

// resolve resolves in the office the letters that the broker has. It skips those that another
// caller has resolved meanwhile.
func (o *officeCopies) resolve(ctx context.Context, letters []nixie.ID) error {
	for ids := range slices.Chunk(letters, MaxBatch) {
		list := make([]store.Resolution, len(ids))
		for i, id := range ids {
			list[i] = store.Resolution{Letter: id, Event: store.OnConfirm, Actor: o.actor, Reason: o.reason}
		}
		for _, err := range o.Resolve(ctx, list) {
			if err != nil && !Refuses(err) {
				return err
			}
		}
	}
	return nil
}

// letters returns the letters of a part.
func (p *part) letters() []nixie.ID {
	ids := make([]nixie.ID, len(p.list))
	for i := range p.list {
		ids[i] = p.list[i].Letter
	}
	return ids
}

// confirmed returns the letters of the office that the broker has.
func (p *part) confirmed(dry bool) (ids []nixie.ID) {
	if dry || len(p.here) == 0 {
		return nil
	}
	here := make(map[nixie.ID]bool, len(p.here))
	for _, id := range p.here {
		here[id] = true
	}
	for i, err := range p.errs {
		if err == nil && here[p.list[i].Letter] {
			ids = append(ids, p.list[i].Letter)
		}
	}
	return ids
}

// skip notes a letter that the move leaves as it is, and the reason.
func (d *Moved) skip(letter nixie.ID, why string) {
	d.Skipped++
	if len(d.Refused) < MaxRefusals {
		d.Refused = append(d.Refused, Refusal{letter, why})
	}
}
