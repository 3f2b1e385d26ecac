package postgres

import (
	"context"

	"github.com/nixie-go/nixie"
)

// Settle implements store.Queue.
func (s *Store) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := make([]error, len(settlements))
	if len(settlements) == 0 {
		return errs
	}
	if err := checkCall(len(settlements)); err != nil {
		return all(errs, err)
	}
	done, err := s.completePlain(ctx, settlements)
	if err != nil && !isRace(err) {
		return all(errs, err)
	}
	rest, places := unsettled(settlements, done)
	if len(rest) == 0 {
		return errs
	}
	left := make([]error, len(rest))
	if err := s.write(ctx, func(t *tx) error { return t.settleAll(rest, left) }); err != nil {
		all(left, err)
	}
	for i, place := range places {
		errs[place] = left[i]
	}
	return errs
}

// unsettled are the settlements that are not done yet, and where they stand in the
// call.
func unsettled(settlements []nixie.Settlement, done []bool) (rest []nixie.Settlement, places []int) {
	for i := range settlements {
		if done == nil || !done[i] {
			rest, places = append(rest, settlements[i]), append(places, i)
		}
	}
	return rest, places
}

// settleAll applies the settlements of one call, in their order.
func (t *tx) settleAll(settlements []nixie.Settlement, errs []error) error {
	deliveries := make([]*nixie.Delivery, 0, len(settlements))
	var halting []nixie.ID
	told := false // of failures: a letter says what the first and the newest was
	for i := range settlements {
		st := &settlements[i]
		deliveries = append(deliveries, st.Delivery)
		if st.Verb == nixie.Halt && st.Delivery != nil {
			halting = append(halting, st.Delivery.ID)
		}
		told = told || st.Failure != nil || st.Second != nil || st.Burial != nil || st.Verb == nixie.Discard
	}
	if len(halting) > 0 { // their queues will be paused
		t.run("select from @.queue where n in (select queue from @.message where id = any($1::uuid[])) order by n for update", uuids(halting))
	}
	if err := t.holdLeased(deliveries, told); err != nil {
		return err
	}
	for i := range settlements {
		errs[i] = t.settle(&settlements[i])
	}
	return nil
}

// settle applies one settlement. It answers before it changes anything.
func (t *tx) settle(st *nixie.Settlement) error {
	m, err := t.held(st.Delivery)
	if err != nil {
		return err
	}
	if err := checkSettlement(st, m); err != nil {
		return err
	}
	return t.apply(m, st)
}

// apply does what a settlement asks for that is allowed.
func (t *tx) apply(m *message, st *nixie.Settlement) error {
	on := event(st.Verb)
	if err := m.move(on); err != nil {
		return err
	}
	m.learn(st.Delivery.Steps)
	for _, f := range [...]*nixie.Failure{st.Failure, st.Second} {
		if f != nil {
			t.fail(m, f, st.Verb)
		}
	}
	t.touch(m)
	if m.ordered {
		t.stir(m.queue, m.stream)
	}
	switch on {
	case nixie.OnComplete:
		return t.end(m, nixie.OnSuccess, "")
	case nixie.OnDiscard:
		return t.end(m, nixie.OnGone, st.Note)
	case nixie.OnBury:
		return t.bury(m, st, system, st.Burial.Rule)
	}
	t.again(m, st)
	return nil
}

// system is the actor of what nobody did by hand.
const system = "nixie"

// again queues a message that was retried or released. A release takes the attempt
// back; one of an abandoned message, which took none, leaves it to be judged by the
// next holder.
func (t *tx) again(m *message, st *nixie.Settlement) {
	m.wait(t.now + int64(st.Delay))
	switch {
	case st.Verb == nixie.Retry:
		m.abandoned = ""
	case m.abandoned == "":
		m.attempts--
	}
	m.mayPass = st.MayPass && st.Verb == nixie.Release && m.ordered && m.q.settings.Order == nixie.OrderStrict
	if m.ordered {
		m.state = stBehind
	} else if st.Delay == 0 {
		t.wake(m.q.name)
	}
}

// end finishes a message that succeeded, was discarded or canceled, and moves its
// letter on if it has one that was redriven.
func (t *tx) end(m *message, on nixie.Event, note string) error {
	t.leave(m)
	m.note = note
	t.release(m, true)
	if l := m.letter; l != nil && l.status == nixie.StatusRedriving {
		l.note = note
		return t.moveLetter(l, on, system, "")
	}
	return nil
}

// leave ends the way of a message.
func (t *tx) leave(m *message) {
	m.abandoned, m.mayPass, m.ordered = "", false, false
	m.ended = t.now
	m.owner, m.until = 0, 0
}

// event is the row of the table of moves that a verb stands for.
func event(v nixie.Verb) nixie.Event {
	switch v {
	case nixie.Complete:
		return nixie.OnComplete
	case nixie.Retry:
		return nixie.OnRetry
	case nixie.Release:
		return nixie.OnRelease
	case nixie.Discard:
		return nixie.OnDiscard
	case nixie.Bury, nixie.Hold, nixie.Halt:
		return nixie.OnBury
	}
	return ""
}

// checkSettlement refuses what could not be applied whole.
func checkSettlement(st *nixie.Settlement, m *message) error {
	if st.Delay < 0 || st.Delay > nixie.MaxDelay {
		return nixie.Errorf(nixie.CodeInvalid, "delay is %s: give one from 0 to %s", st.Delay, nixie.MaxDelay)
	}
	switch event(st.Verb) {
	case "":
		return nixie.Errorf(nixie.CodeInvalid, "verb %q is not one of complete, retry, release, discard, bury, hold, halt", st.Verb)
	case nixie.OnBury:
		if st.Burial == nil {
			return nixie.Errorf(nixie.CodeInvalid, "verb %s has no burial: say cause, status and group of the letter", st.Verb)
		}
		if m.letter != nil && m.letter.status != nixie.StatusRedriving {
			return m.letter.forbids(nixie.OnDieAgain)
		}
	}
	return nil
}
