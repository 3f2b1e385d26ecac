package redrive

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// beside is the office that may have the letters of a channel as well: what is redriven
// there is not sent again from here, and what is sent from here is resolved there.
type beside struct {
	store.DeadLetters
	actor, reason string
}

// sort leaves out of a flight what the office has moved on, which counts as done with, and
// what somebody decided there to keep.
func (o *beside) sort(ctx context.Context, f *flight, done *Moved) error {
	there := map[nixie.ID]*nixie.Letter{}
	for ids := range slices.Chunk(f.letters(), MaxBatch) {
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
	list, chosen := f.list[:0], f.chosen[:0]
	for i, back := range f.list {
		l := there[back.Letter]
		switch {
		case l == nil:
		case l.Message.Redrives > back.Redrives:
			f.elsewhere = append(f.elsewhere, f.chosen[i])
			continue
		case l.Status == nixie.StatusQuarantined, l.Status == nixie.StatusDiscarded:
			done.skip(back.Letter, "letter "+back.Letter.String()+" is "+string(l.Status)+" in the office")
			continue
		default:
			f.here = append(f.here, back.Letter)
		}
		list, chosen = append(list, back), append(chosen, f.chosen[i])
	}
	f.list, f.chosen = list, chosen
	done.Elsewhere += int64(len(f.elsewhere))
	return nil
}

// resolve tells the office what the broker has. Where somebody was quicker there is
// nothing left to say.
func (o *beside) resolve(ctx context.Context, letters []nixie.ID) error {
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

// letters are those of a flight.
func (f *flight) letters() []nixie.ID {
	ids := make([]nixie.ID, len(f.list))
	for i := range f.list {
		ids[i] = f.list[i].Letter
	}
	return ids
}

// confirmed are the letters of the office that the broker has.
func (f *flight) confirmed(dry bool) (ids []nixie.ID) {
	if dry || len(f.here) == 0 {
		return nil
	}
	here := make(map[nixie.ID]bool, len(f.here))
	for _, id := range f.here {
		here[id] = true
	}
	for i, err := range f.errs {
		if err == nil && here[f.list[i].Letter] {
			ids = append(ids, f.list[i].Letter)
		}
	}
	return ids
}

// skip notes what is left as it is, and why.
func (d *Moved) skip(letter nixie.ID, why string) {
	d.Skipped++
	if len(d.Refused) < MaxRefusals {
		d.Refused = append(d.Refused, Refusal{letter, why})
	}
}
