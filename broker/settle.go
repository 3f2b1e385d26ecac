package broker

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// verdict is one settlement on its way through [Source.Settle].
type verdict struct {
	st   *nixie.Settlement
	item *item // nil: its lease was over
	at   int   // its place
	mine bool  // it is settled by this call
	err  error
	end  end
}

// end is what becomes of the record of a settlement that succeeded.
type end byte

// The ends of a record.
const (
	done   end = iota // acknowledged
	back              // given back to the broker
	inHand            // it waits here for its next turn
)

// Settle stores what has to be stored, letters and retries, and then lets the
// broker know of those of which that succeeded. What needs no storing does not wait
// for that. A settlement that failed may be repeated: a letter that the office has is
// not taken in twice, and one that a channel has is recognised by its
// x-dead-letter-id.
func (s *Source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	now := s.c.Clock()
	k := s.desk(settlements)
	all, plain := k.all, k.plain
	s.ours(ctx, all)
	var letters, retries []*verdict
	for n := range all {
		switch v := &all[n]; {
		case v.err != nil:
			plain = append(plain, v)
		case v.buries():
			letters = append(letters, v)
		case s.leaves(v):
			retries = append(retries, v)
		default:
			if v.st.Verb == nixie.Retry || v.st.Verb == nixie.Release {
				v.end = s.waits(v.st)
			}
			plain = append(plain, v)
		}
	}
	k.plain = plain
	s.end(ctx, k, plain, now)
	if len(letters)+len(retries) > 0 {
		s.keep(ctx, letters, retries, now)
		s.end(ctx, k, append(letters, retries...), now)
	}
	errs := make([]error, len(all))
	for n := range all {
		errs[n] = all[n].err
	}
	s.clear(k)
	return errs
}

// keep stores letters and retries. A store takes no longer than storeLimit: what is
// done elsewhere is not to wait for it. A channel takes as long as ctx lasts, because
// what was sent there and is not waited for would be sent twice.
func (s *Source) keep(ctx context.Context, letters, retries []*verdict, now time.Time) {
	if len(letters) > 0 {
		s.bury(ctx, letters, now)
	}
	switch {
	case len(retries) == 0:
	case s.c.Park != nil:
		s.park(ctx, retries)
	default:
		s.send(ctx, retries, now)
	}
}

// storeLimit is how long a store may take for letters or retries of one call.
const storeLimit = 5 * time.Second

// end lets the broker know what became of records, and lets others go.
func (s *Source) end(ctx context.Context, k *desk, vs []*verdict, now time.Time) {
	if len(vs) > 0 {
		s.tell(ctx, k, vs)
		s.apply(vs, now)
	}
}

// ours asks whether records are still ours of which something is to be stored: who
// has them now decides about them, and there would be a letter too many.
func (s *Source) ours(ctx context.Context, all []verdict) {
	var records []*Record
	var asked []*verdict
	for n := range all {
		if v := &all[n]; v.err == nil && (v.buries() || s.leaves(v)) {
			records = append(records, v.item.record)
			asked = append(asked, v)
		}
	}
	if len(records) == 0 {
		return
	}
	for n, err := range s.c.Driver.Extend(ctx, records, nixie.DefaultLease) {
		asked[n].err = err
	}
}

func (v *verdict) buries() bool { return buries(v.st.Verb) }

func buries(verb nixie.Verb) bool {
	switch verb {
	case nixie.Bury, nixie.Hold, nixie.Halt:
		return true
	}
	return false
}

// waits says where a record waits that is to run again: with the broker if it can,
// otherwise in hand. What was only judged runs next, and stays.
func (s *Source) waits(st *nixie.Settlement) end {
	f := &s.features
	switch {
	case !f.Nack || f.Held && st.Delivery.Abandoned:
		return inHand
	case !f.Held || st.Delay <= f.MaxDelay && (st.Delay > 0 || st.Verb == nixie.Release):
		return back
	}
	return inHand
}

// park stores what is to be retried.
func (s *Source) park(ctx context.Context, parked []*verdict) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	for _, v := range parked {
		_, err := s.c.Park.Enqueue(ctx, v.item.parked(s.c.ParkIn, v.st))
		switch code := nixie.CodeOf(err); {
		case (code == nixie.CodeLimit || code == nixie.CodeInvalid) && s.features.Held:
			v.end = inHand // the store cannot take it, ever
		case err != nil:
			v.err = nixie.Errorf(nixie.CodeUnavailable, "park message %s: %w", v.st.Delivery.ID, err)
		}
	}
}

// tell lets the broker know.
func (s *Source) tell(ctx context.Context, k *desk, all []*verdict) {
	for _, v := range all {
		switch {
		case v.err != nil || v.end == inHand:
		case v.end == back:
			v.err = s.c.Driver.Nack(ctx, []*Record{v.item.record}, min(v.st.Delay, s.features.MaxDelay))[0]
		default:
			k.acked = append(k.acked, v.item.record)
		}
	}
	if len(k.acked) == 0 {
		return
	}
	errs := s.c.Driver.Ack(ctx, k.acked)
	for _, v := range all {
		if v.err == nil && v.end == done {
			v.err, errs = errs[0], errs[1:]
		}
	}
	clear(k.acked)
	k.acked = k.acked[:0]
}

// apply takes back what is settled or lost, and lets others go.
func (s *Source) apply(all []*verdict, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.inHand >= s.c.MaxInHand || s.bytes >= s.c.MaxBytes || s.careful
	before := s.ready.len() + s.suspect.len()
	for _, v := range all {
		if !v.mine {
			continue
		}
		v.item.settling = false
		switch {
		case v.err != nil && nixie.CodeOf(v.err) == nixie.CodeLeaseLost:
			s.takeBack(v.at)
			s.forget(v.item)
		case v.err != nil: // it may be repeated
		case v.end == inHand:
			s.takeBack(v.at)
			s.again(v, now)
		default:
			s.takeBack(v.at)
			s.forget(v.item)
			s.halted = s.halted || v.st.Verb == nixie.Halt
		}
	}
	if full || s.ready.len()+s.suspect.len() > before || len(s.waiting) > 0 {
		s.interrupt()
	}
}

// crashesAfter is how many crashes count after a settlement: a holder that asks for a
// retry has survived. The delivery itself stays as it is, as its worker may look at it.
func crashesAfter(st *nixie.Settlement) int {
	if st.Verb == nixie.Retry && !st.Delivery.Abandoned {
		return 0
	}
	return st.Delivery.Crashes
}

// again lets an item wait in hand for its next turn. Those behind it in its lane
// wait as well.
func (s *Source) again(v *verdict, now time.Time) {
	i, last := v.item, v.item.delivery
	d := &nixie.Delivery{Message: last.Message}
	d.Crashes = crashesAfter(v.st)
	i.delivery, i.suspect = d, d.Crashes > 0
	if v.st.Verb == nixie.Release && !last.Abandoned {
		d.Attempts--
	}
	history, dropped := i.with(v.st)
	i.remember(history, dropped)
	if n := len(history); n > 0 {
		d.LastFailure, d.LastReason = history[n-1].Text, history[n-1].Reason
	}
	s.bytes -= i.size
	i.size = sizeOf(i.record) + i.weight()
	s.bytes += i.size
	if v.st.Delay <= 0 {
		s.offer(i)
		return
	}
	s.waiting.add(i, now.Add(v.st.Delay))
}
