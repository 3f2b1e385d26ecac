package redrive

import (
	"context"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// move is a run of a [Mover].
type move struct {
	Mover
	done  Moved
	pacer Engine
	pace  *pace
	brake *brake
	aloft []*flight // on their way, the oldest first
	out   int       // records of those

	lasting context.Context // for what is to be remembered

	remembering sync.Mutex // one call at a time
	mu          sync.Mutex
	unkept      []*flight // that are to be remembered, the oldest first
}

// flight is records that were read together, and are sent and remembered together.
type flight struct {
	list        []broker.Returning
	chosen      []*broker.Record // that list was made of
	elsewhere   []*broker.Record // done with, because the office has moved them on
	here        []nixie.ID       // of list: letters that the office has as well
	quarantined []bool
	out         int // of list: those that were sent

	answered bool    // errs is known; guarded by the move's mutex
	errs     []error // what became of each
	kept     error   // of remembering; once it has landed, as errs
	landed   chan struct{}
}

// next sends the next part, and reports whether there may be more.
func (v *move) next(ctx context.Context) (more bool, err error) {
	most := v.part()
	if most == 0 {
		if len(v.aloft) == 0 {
			return false, nil
		}
		return true, v.land()
	}
	n, err := v.pacer.allowed(ctx, v.pace, most)
	if err != nil {
		return false, err
	}
	if err := v.brake.check(ctx, v.done.Redriven+int64(v.out)); err != nil {
		return false, err
	}
	records, err := v.From.Next(ctx, n)
	if nixie.CodeOf(err) == nixie.CodeLimit && len(v.aloft) > 0 {
		return true, v.land() // there may be room when that is remembered
	}
	if err != nil || len(records) == 0 {
		return false, err
	}
	return true, v.send(ctx, records)
}

// follow begins to count what dies again, where the reader tells.
func (v *move) follow(ctx context.Context) error {
	v.brake = &brake{Stop: v.Stop, clock: v.Clock, next: v.Clock().Add(lookEvery)}
	from, follows := v.From.(broker.Follower)
	if !follows || v.DryRun {
		v.brake.died = func(context.Context) (int64, error) { return 0, nil }
		return nil
	}
	v.brake.died = func(ctx context.Context) (int64, error) {
		added, err := from.Since(ctx)
		for i := range added {
			if broker.OperationOf(added[i].Headers) == v.Operation {
				v.done.DiedAgain++
			}
		}
		return v.done.DiedAgain, err
	}
	_, err := v.brake.died(ctx)
	return err
}

// part is how many records may go now: with those on their way not more than a batch,
// nor more than may be sent in all.
func (v *move) part() int {
	most := min(max(v.Batch/partsAloft, 1), v.Batch-v.out)
	if v.Choose != nil {
		most = min(most, maxChoice)
	}
	if v.Max > 0 {
		most = int(min(int64(most), int64(v.Max)-v.done.sent()-int64(v.out)))
	}
	return most
}

// send sends those of records that are chosen. What follows is done beside the next
// ones.
func (v *move) send(ctx context.Context, records []broker.Record) error {
	f := &flight{list: make([]broker.Returning, 0, len(records)), chosen: make([]*broker.Record, 0, len(records)), landed: make(chan struct{})}
	for i := range records {
		if v.Choose != nil && !v.Choose(&records[i]) {
			v.done.Passed++
			continue
		}
		back := broker.FromRecord(&records[i])
		back.Operation = v.Operation
		f.list = append(f.list, back)
		f.chosen = append(f.chosen, &records[i])
	}
	v.done.Read += int64(len(records))
	var unasked error
	if v.Office != nil {
		if unasked = v.office().sort(ctx, f, &v.done); unasked != nil {
			f.list, f.chosen = nil, nil // nothing of it is sent, or done with
		}
	}
	f.quarantined = make([]bool, len(f.list))
	var answers func() []error
	f.out, answers = v.begin(ctx, f)
	v.out += f.out
	v.pace.took(f.out)
	v.aloft = append(v.aloft, f)
	v.mu.Lock()
	v.unkept = append(v.unkept, f)
	v.mu.Unlock()
	go func() {
		errs := answers()
		v.mu.Lock()
		f.errs, f.answered = errs, true
		v.mu.Unlock()
		v.remember()
	}()
	return unasked
}

func (v *move) office() *beside { return &beside{v.Office, v.Actor, v.Reason} }

// remember has remembered what was sent, in its order: those flights together that are
// answered by the time the call before has ended.
func (v *move) remember() {
	v.remembering.Lock()
	defer v.remembering.Unlock()
	var calls [][]*broker.Record
	v.mu.Lock()
	for n := 0; n < len(v.unkept) && v.unkept[n].answered; n++ {
		calls = append(calls, v.unkept[n].sent(v.DryRun))
	}
	landing := v.unkept[:len(calls)]
	v.unkept = v.unkept[len(calls):]
	v.mu.Unlock()
	if len(calls) == 0 {
		return // others were so kind
	}
	var err error
	for _, f := range landing {
		if ids := f.confirmed(v.DryRun); err == nil && len(ids) > 0 {
			err = v.office().resolve(v.lasting, ids)
		}
	}
	if err == nil {
		err = v.From.Done(v.lasting, calls...)
	}
	for _, f := range landing {
		f.kept = err
		close(f.landed)
	}
}

// begin sends, but in a dry run, and returns how many and what waits until it is known
// what became of each.
func (v *move) begin(ctx context.Context, f *flight) (n int, answers func() []error) {
	if !v.DryRun {
		return v.Destination.send(ctx, f.list, f.quarantined)
	}
	errs := make([]error, len(f.list))
	for i := range f.list {
		if _, f.quarantined[i], errs[i] = v.Destination.prepare(ctx, &f.list[i]); errs[i] == nil {
			n++
		}
	}
	return n, func() []error { return errs }
}

// sent are the records that are done with.
func (f *flight) sent(dry bool) (list []*broker.Record) {
	for i, err := range f.errs {
		if err == nil && !dry {
			list = append(list, f.chosen[i])
		}
	}
	if dry {
		return nil
	}
	return append(list, f.elsewhere...)
}

// land waits for the oldest flight and counts what became of it. An error is about more
// than one record.
func (v *move) land() (failed error) {
	f := v.aloft[0]
	<-f.landed
	v.aloft = v.aloft[1:]
	v.out -= f.out
	for i, err := range f.errs {
		switch {
		case err == nil && f.quarantined[i]:
			v.done.Quarantined++
			v.done.To[broker.ChannelName(v.Destination.Quarantine, f.list[i].Origin.Channel)]++
		case err == nil:
			v.done.Redriven++
			v.done.To[f.list[i].Publication.Channel]++
		case Refuses(err):
			v.done.skip(f.list[i].Letter, err.Error())
		default:
			failed = err
			if unanswered(err) {
				v.done.Unanswered++
			}
		}
	}
	v.done.Left = v.From.Left()
	if v.Progress != nil {
		v.Progress(v.done)
	}
	if f.kept != nil {
		return f.kept
	}
	return failed
}
