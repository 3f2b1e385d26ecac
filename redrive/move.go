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
	done     Moved
	pacer    Engine
	pace     *pace
	brake    *brake
	inFlight []*part // the oldest first
	out      int     // records in flight

	lasting context.Context // outlives the context of Run, for remembering

	remembering  sync.Mutex // serialises remember
	mu           sync.Mutex // guards unremembered, and answered of its parts
	unremembered []*part    // the oldest first
}

// part holds records that were read together. They are sent together and remembered together:
//
//	sent        in flight; the broker has not answered
//	answered    the broker has answered all of it
//	completed   the reader remembers it, or remembering has failed
type part struct {
	list        []broker.Returning
	chosen      []*broker.Record // the i-th made the i-th of list
	elsewhere   []*broker.Record // done, because the office has redriven them
	here        []nixie.ID       // letters of list that the office has too
	quarantined []bool           // by list
	out         int              // records of list that were sent

	answered    bool          // errs is known
	errs        []error       // by list; read it once answered or completed
	rememberErr error         // read it once completed
	completed   chan struct{} // closed when the part is completed
}

// next sends the next part, and reports whether there may be more.
func (v *move) next(ctx context.Context) (more bool, err error) {
	most := v.partSize()
	if most == 0 {
		if len(v.inFlight) == 0 {
			return false, nil
		}
		return true, v.complete()
	}
	n, err := v.pacer.allowed(ctx, v.pace, most)
	if err != nil {
		return false, err
	}
	if err := v.brake.check(ctx, v.done.Redriven+int64(v.out)); err != nil {
		return false, err
	}
	records, err := v.From.Next(ctx, n)
	if nixie.CodeOf(err) == nixie.CodeLimit && len(v.inFlight) > 0 {
		return true, v.complete() // the reader may have room once it remembers more
	}
	if err != nil || len(records) == 0 {
		return false, err
	}
	return true, v.send(ctx, records)
}

// follow begins to count the letters that die again, if the reader can tell.
func (v *move) follow(ctx context.Context) error {
	v.brake = &brake{Stop: v.Stop, clock: v.Clock, next: v.Clock().Add(askEvery)}
	from, follows := v.From.(broker.Follower)
	if !follows || v.DryRun {
		v.brake.died = func(context.Context) (int64, error) { return 0, nil }
		return nil
	}
	v.brake.died = func(ctx context.Context) (int64, error) {
		added, err := from.Since(ctx)
		for i := range added {
			if added[i].OperationOf() == v.Operation {
				v.done.DiedAgain++
			}
		}
		return v.done.DiedAgain, err
	}
	_, err := v.brake.died(ctx)
	return err
}

// partSize returns how many records may go now: with those in flight at most a batch, and at most
// Max in all.
func (v *move) partSize() int {
	most := min(max(v.Batch/partsInFlight, 1), v.Batch-v.out)
	if v.Choose != nil {
		most = min(most, maxChoice)
	}
	if v.Max > 0 {
		most = int(min(int64(most), int64(v.Max)-v.done.sent()-int64(v.out)))
	}
	return most
}

// send sends the chosen ones of some records. A goroutine waits for the answers and remembers them,
// while the next part is sent.
func (v *move) send(ctx context.Context, records []broker.Record) error {
	p := &part{
		list:      make([]broker.Returning, 0, len(records)),
		chosen:    make([]*broker.Record, 0, len(records)),
		completed: make(chan struct{}),
	}
	for i := range records {
		if v.Choose != nil && !v.Choose(&records[i]) {
			v.done.Passed++
			continue
		}
		back := broker.FromRecord(&records[i])
		back.Operation = v.Operation
		p.list = append(p.list, back)
		p.chosen = append(p.chosen, &records[i])
	}
	v.done.Read += int64(len(records))
	var unasked error
	if v.Office != nil {
		if unasked = v.office().compare(ctx, p, &v.done); unasked != nil {
			p.list, p.chosen = nil, nil // none of it is sent, and none is done
		}
	}
	p.quarantined = make([]bool, len(p.list))
	var answers func() []error
	p.out, answers = v.begin(ctx, p)
	v.out += p.out
	v.pace.took(p.out)
	v.inFlight = append(v.inFlight, p)
	v.mu.Lock()
	v.unremembered = append(v.unremembered, p)
	v.mu.Unlock()
	go func() {
		errs := answers()
		v.mu.Lock()
		p.errs, p.answered = errs, true
		v.mu.Unlock()
		v.remember()
	}()
	return unasked
}

func (v *move) office() *officeCopies { return &officeCopies{v.Office, v.Actor, v.Reason} }

// remember makes the reader remember the answered parts, in their order: all that the broker has
// answered when the call before has ended.
func (v *move) remember() {
	v.remembering.Lock()
	defer v.remembering.Unlock()
	var calls [][]*broker.Record
	v.mu.Lock()
	for n := 0; n < len(v.unremembered) && v.unremembered[n].answered; n++ {
		calls = append(calls, v.unremembered[n].sent(v.DryRun))
	}
	answered := v.unremembered[:len(calls)]
	v.unremembered = v.unremembered[len(calls):]
	v.mu.Unlock()
	if len(calls) == 0 {
		return // another goroutine has remembered them
	}
	var err error
	for _, p := range answered {
		if ids := p.confirmed(v.DryRun); err == nil && len(ids) > 0 {
			err = v.office().resolve(v.lasting, ids)
		}
	}
	if err == nil {
		err = v.From.Done(v.lasting, calls...)
	}
	for _, p := range answered {
		p.rememberErr = err
		close(p.completed)
	}
}

// begin sends a part, except in a dry run. It returns how many records went, and a function that
// waits for the answers.
func (v *move) begin(ctx context.Context, p *part) (n int, answers func() []error) {
	if !v.DryRun {
		return v.Destination.send(ctx, p.list, p.quarantined)
	}
	errs := make([]error, len(p.list))
	for i := range p.list {
		if _, p.quarantined[i], errs[i] = v.Destination.prepare(ctx, &p.list[i]); errs[i] == nil {
			n++
		}
	}
	return n, func() []error { return errs }
}

// sent returns the records that the reader may remember as done.
func (p *part) sent(dry bool) (list []*broker.Record) {
	for i, err := range p.errs {
		if err == nil && !dry {
			list = append(list, p.chosen[i])
		}
	}
	if dry {
		return nil
	}
	return append(list, p.elsewhere...)
}

// complete waits for the oldest part and counts its answers. It returns an error if that is about
// more than one record.
func (v *move) complete() (failed error) {
	p := v.inFlight[0]
	<-p.completed
	v.inFlight = v.inFlight[1:]
	v.out -= p.out
	for i, err := range p.errs {
		switch {
		case err == nil && p.quarantined[i]:
			v.done.Quarantined++
			v.done.To[broker.ChannelName(v.Destination.Quarantine, p.list[i].Origin.Channel)]++
		case err == nil:
			v.done.Redriven++
			v.done.To[p.list[i].Publication.Channel]++
		case Refuses(err):
			v.done.skip(p.list[i].Letter, err.Error())
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
	if p.rememberErr != nil {
		return p.rememberErr
	}
	return failed
}
