package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func waitClauses() []clause {
	return []clause{
		{"SeesEveryEnd", seesEveryEnd},
		{"EndsWithItsContext", endsWithContext},
		{"AnUnknownMessageIsNotFound", waitUnknown},
	}
}

// seesEveryEnd waits in one process for messages that another ends, in each way.
func seesEveryEnd(b *fixture) {
	ways := []struct {
		state nixie.State
		end   func(d *nixie.Delivery) error
	}{
		{nixie.Succeeded, func(d *nixie.Delivery) error { return b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}) }},
		{nixie.Discarded, func(d *nixie.Delivery) error { return b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Discard}) }},
		{nixie.Canceled, func(d *nixie.Delivery) error { return b.amend(d.ID, store.Cancel) }},
		{nixie.Dead, func(d *nixie.Delivery) error { return b.settle(b.dying(d, nixie.StatusOpen)) }},
	}
	other := b.join()
	ctx, stop := context.WithTimeout(b.ctx, time.Minute)
	defer stop()
	var ids []nixie.ID
	var ds []*nixie.Delivery
	for _, way := range ways {
		d := b.took(string(way.state))
		ds, ids = append(ds, d), append(ids, d.ID)
	}
	ids = append(ids, ids[0]) // one ID twice
	type answer struct {
		list []store.Record
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		list, err := store.Wait(ctx, other, ids...)
		answers <- answer{list, err}
	}()
	for i, way := range ways {
		select {
		case got := <-answers:
			b.Fatalf("it did not wait: %v", got.err)
		default:
		}
		b.ok(way.end(ds[i]))
	}
	got := <-answers
	b.ok(got.err)
	same(b, "records", len(got.list), len(ids))
	for i, r := range got.list {
		same(b, "message", r.ID, ids[i])
		same(b, "state of "+r.Key, r.State, ways[i%len(ways)].state)
		same(b, "body of "+r.Key, string(r.Body), "body of "+r.Key)
	}
	same(b, "failures of the dead one", len(got.list[3].History), 1)
	list, err := store.Wait(ctx, b.st)
	b.ok(err)
	same(b, "records of none", len(list), 0)
}

// looks makes a call before the first listing of whole messages after another listing.
type looks struct {
	store.Overview
	whole  bool
	enough func()
}

func (l *looks) Messages(ctx context.Context, f nixie.Filter, p store.Page) ([]store.Record, string, error) {
	if l.whole && !p.Whole {
		l.enough()
	}
	l.whole = p.Whole
	return l.Overview.Messages(ctx, f, p)
}

func endsWithContext(b *fixture) {
	done, open := b.took("done"), b.put("open")
	b.complete(done)
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	list, err := store.Wait(ctx, &looks{Overview: b.st, enough: stop}, open, done.ID)
	b.code(err, nixie.CodeUnavailable)
	if !errors.Is(err, context.Canceled) {
		b.Fatalf("error is %v", err)
	}
	same(b, "records", len(list), 2)
	same(b, "the one that ended", list[1].State, nixie.Succeeded)
	if !list[0].ID.IsZero() {
		b.Fatalf("the other one is %+v", list[0])
	}
}

func waitUnknown(b *fixture) {
	done := b.took("done")
	b.complete(done)
	list, err := store.Wait(b.ctx, b.st, done.ID, nixie.ID{1})
	b.code(err, nixie.CodeNotFound)
	same(b, "the one that is there", list[0].State, nixie.Succeeded)
	_, err = store.Wait(b.ctx, b.st, make([]nixie.ID, nixie.MaxBatch+1)...)
	b.code(err, nixie.CodeLimit)
}
