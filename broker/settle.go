package broker

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// openSettlement is one settlement that [Source.Settle] is working on.
type openSettlement struct {
	st   *nixie.Settlement
	item *item // nil: its lease was over
	slot int   // of the item
	mine bool  // this call settles it
	err  error
	then disposition
}

// disposition tells what a source does with a record after its settlement succeeded.
type disposition byte

// Dispositions of a record.
const (
	toAck  disposition = iota // acknowledge it
	toNack                    // give it back to the broker
	toKeep                    // keep it in hand for its next attempt
)

// Settle first stores letters, retries and the messages that follow settlements, and then
// acknowledges the records of those that succeeded. Settlements that need no storing do not wait
// for them.
//
// The caller may repeat a settlement that failed. An office takes a letter in only once. On a
// channel the letter may appear twice, with the same x-dead-letter-id.
func (s *Source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	now := s.c.Clock()
	k := s.lookUpAll(settlements)
	all, plain := k.all, k.plain
	s.checkHeld(ctx, all)
	var letters, retries, followed []*openSettlement
	for n := range all {
		switch v := &all[n]; {
		case v.err != nil:
			plain = append(plain, v)
		case buries(v.st.Verb):
			letters = append(letters, v)
		case s.waitsElsewhere(v):
			retries = append(retries, v)
		default:
			if v.st.Verb == nixie.Retry || v.st.Verb == nixie.Release {
				v.then = s.retryDisposition(v.st)
			}
			if len(v.st.Then) > 0 {
				followed = append(followed, v)
			} else {
				plain = append(plain, v)
			}
		}
	}
	k.plain = plain
	s.conclude(ctx, k, plain, now)
	if len(letters)+len(retries)+len(followed) > 0 {
		s.storeOutcomes(ctx, letters, retries, now)
		stored := slices.Concat(letters, retries, followed)
		s.follow(ctx, stored) // the letter comes first
		s.conclude(ctx, k, stored, now)
	}
	errs := make([]error, len(all))
	for n := range all {
		errs[n] = all[n].err
	}
	s.putBack(k)
	return errs
}

// storeOutcomes stores letters and retries. A store gets at most storeLimit, because other
// settlements of the worker wait for it. A channel gets as long as ctx lasts: a record whose answer
// was not awaited would be published twice.
func (s *Source) storeOutcomes(ctx context.Context, letters, retries []*openSettlement, now time.Time) {
	if len(letters) > 0 {
		s.buryLetters(ctx, letters, now)
	}
	switch {
	case len(retries) == 0:
	case s.c.Park != nil:
		s.parkRetries(ctx, retries, now)
	default:
		s.publishRetries(ctx, retries, now)
	}
}

// storeLimit bounds the time of a store for the letters, or the retries, of one call.
const storeLimit = 5 * time.Second

// conclude tells the broker what became of records, and makes items ready that waited for them.
func (s *Source) conclude(ctx context.Context, k *scratch, vs []*openSettlement, now time.Time) {
	if len(vs) > 0 {
		s.acknowledge(ctx, k, vs, now)
		s.apply(vs, now)
	}
}

// checkHeld asks the driver which records the source still holds, before it stores their letters
// and retries. If another consumer has a record, that one decides about it, and a letter from here
// would be one too many.
func (s *Source) checkHeld(ctx context.Context, all []openSettlement) {
	var records []*Record
	var asked []*openSettlement
	for n := range all {
		if v := &all[n]; v.err == nil && (buries(v.st.Verb) || len(v.st.Then) > 0 || s.waitsElsewhere(v)) {
			records = append(records, v.item.record)
			asked = append(asked, v)
		}
	}
	if len(records) == 0 {
		return
	}
	for n, err := range s.c.Driver.Extend(ctx, records, s.newestLease()) {
		asked[n].err = err
	}
}

func buries(verb nixie.Verb) bool {
	switch verb {
	case nixie.Bury, nixie.Hold, nixie.Halt:
		return true
	}
	return false
}

// retryDisposition decides where a record waits that is to run again: with the broker if it can,
// otherwise in hand. A record that a worker only judged stays in hand and runs next. A retry
// without a delay stays too: the broker would forget its failures for nothing. All records stay
// where the broker counts a release as it counts a crash.
func (s *Source) retryDisposition(st *nixie.Settlement) disposition {
	f := &s.features
	if f.Nack && !f.CountsAll && !st.Delivery.Abandoned && st.Delay <= f.MaxDelay && (st.Delay > 0 || st.Verb == nixie.Release) {
		return toNack
	}
	return toKeep
}

// parkRetries stores retries in a queue of a store.
func (s *Source) parkRetries(ctx context.Context, parked []*openSettlement, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	for _, v := range parked {
		_, err := s.c.Park.Enqueue(ctx, v.item.parkedMessage(s.c.ParkIn, v.st, now))
		switch code := nixie.CodeOf(err); {
		case code == nixie.CodeLimit || code == nixie.CodeInvalid:
			v.then = toKeep // the store will never take it
		case err != nil:
			v.err = nixie.Errorf(nixie.CodeUnavailable, "park message %s: %w", v.st.Delivery.ID, err)
		}
	}
}

// acknowledge tells the broker which records are done or given back.
func (s *Source) acknowledge(ctx context.Context, k *scratch, all []*openSettlement, now time.Time) {
	var back []Return
	for _, v := range all {
		switch {
		case v.err != nil || v.then == toKeep:
		case v.then == toNack:
			patience, attempts := v.item.after(v.st, now)
			as := Failed
			if attempts < v.item.delivery.Attempts {
				as = Released
			}
			back = append(back, Return{v.item.record, v.st.Delay, as, patience})
		default:
			k.acked = append(k.acked, v.item.record)
		}
	}
	if len(back) > 0 {
		errs := s.c.Driver.Nack(ctx, back)
		for _, v := range all {
			if v.err == nil && v.then == toNack {
				v.err, errs = errs[0], errs[1:]
			}
		}
	}
	if len(k.acked) == 0 {
		return
	}
	errs := s.c.Driver.Ack(ctx, k.acked)
	for _, v := range all {
		if v.err == nil && v.then == toAck {
			v.err, errs = errs[0], errs[1:]
		}
	}
	clear(k.acked)
	k.acked = k.acked[:0]
}

// apply updates the items of settlements: it frees those that are done or lost, and makes others
// ready that waited for them.
func (s *Source) apply(all []*openSettlement, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.inHand >= s.c.MaxInHand || s.bytes >= s.c.MaxBytes || s.oneAtATime
	before := s.ready.len() + s.suspects.len()
	for _, v := range all {
		if !v.mine {
			continue
		}
		v.item.settling = false
		switch {
		case v.err != nil && nixie.CodeOf(v.err) == nixie.CodeLeaseLost:
			s.freeSlot(v.slot)
			s.forget(v.item)
		case v.err != nil: // the worker may repeat it
		case v.then == toKeep:
			s.freeSlot(v.slot)
			s.retryInHand(v, now)
		default:
			s.freeSlot(v.slot)
			s.forget(v.item)
			s.halted = s.halted || v.st.Verb == nixie.Halt
		}
	}
	if full || s.ready.len()+s.suspects.len() > before || len(s.delayed) > 0 {
		s.interrupt()
	}
}

// crashesAfter returns the crash count after a settlement: 0 after a retry, because that holder has
// survived. It does not change the delivery, which its worker may still read.
func crashesAfter(st *nixie.Settlement) int {
	if st.Verb == nixie.Retry && !st.Delivery.Abandoned {
		return 0
	}
	return st.Delivery.Crashes
}

// retryInHand makes an item wait in hand for its next attempt. The items behind it in its serial
// queue wait as well.
func (s *Source) retryInHand(v *openSettlement, now time.Time) {
	i, last := v.item, v.item.delivery
	d := &nixie.Delivery{Message: last.Message, Operation: last.Operation, FirstFailedAt: last.FirstFailedAt}
	d.Crashes = crashesAfter(v.st)
	d.Patience, d.Attempts = i.after(v.st, now)
	i.delivery, i.suspect = d, d.Crashes > 0
	if v.st.Verb == nixie.Release && last.Abandoned {
		i.judged = false // a worker is still to judge the crash
	}
	history, dropped := i.historyWith(v.st)
	i.remember(history, dropped)
	if n := len(history); n > 0 {
		d.LastFailure, d.LastReason = history[n-1].Text, history[n-1].Reason
	}
	s.bytes -= i.size
	i.size = sizeOf(i.record) + i.historySize()
	s.bytes += i.size
	if v.st.Delay <= 0 {
		s.makeReady(i)
		return
	}
	s.delayed.add(i, now.Add(v.st.Delay))
}
