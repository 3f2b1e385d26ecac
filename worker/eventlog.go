package worker

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// condition is something that goes wrong for a while. The log tells when it begins and when it
// ends.
type condition struct{ name, begun, over string }

// The conditions. Those of calls end with a call that succeeds, the others after quietTime.
var (
	receiving    = condition{"receive", "nothing can be received; it is tried again", "messages are received again"}
	renewing     = condition{"renew", "leases cannot be renewed; it is tried again", "leases are renewed again"}
	settling     = condition{"settle", "outcomes cannot be settled", "outcomes are settled again"}
	policyLookup = condition{"policy", "the policy of the queue cannot be looked up; the last one holds",
		"the policy of the queue is known again"}
	losing      = condition{"lease", "a lease was lost: others get the message", "leases hold again"}
	lateOutcome = condition{"late", "an outcome came too late and does not count", "outcomes come in time again"}
	lateHandler = condition{"timeout", "a handler goes on after its timeout", "handlers end in time again"}
	unexpected  = condition{"other", "something unexpected", "nothing unexpected any more"}
)

// ofCalls reports whether the condition ends with a call that succeeds.
func (s condition) ofCalls() bool {
	switch s {
	case receiving, renewing, settling, policyLookup:
		return true
	}
	return false
}

// Bounds of the log.
const (
	quietTime   = time.Minute // a condition that does not come from calls ends after this time without an event
	mostLogged  = 500         // bytes of a text
	mostPerCall = 10          // groups of deaths that get a line in one call of the settler
)

// eventLog writes the events that a person has to know: each death, and the beginning and the end
// of each condition. It is safe for concurrent use.
type eventLog struct {
	log   *slog.Logger
	clock func() time.Time

	mu     sync.Mutex
	states map[condition]*episode
}

// episode is a condition that lasts.
type episode struct {
	codes  []nixie.Code // of its errors that are in the log
	begun  time.Time
	last   time.Time
	events int
}

func newEventLog(log *slog.Logger, queue string, clock func() time.Time) *eventLog {
	if queue != "" {
		log = log.With("queue", queue)
	}
	return &eventLog{log: log, clock: clock, states: map[condition]*episode{}}
}

// trouble tells the observer, and the log if the condition is new.
func (c *Config) trouble(in condition, err error) {
	c.Observer.Trouble(c.Queue, err)
	c.events.trouble(in, err)
}

// trouble notes an error of a condition. An error with another code is news too.
func (j *eventLog) trouble(in condition, err error) {
	if code := nixie.CodeOf(err); j.news(in, code) {
		j.log.Error(in.begun, "state", in.name, "code", string(code), "error", short(err.Error()))
	}
}

// breaker logs that a circuit breaker opened, or that it is closed again.
func (j *eventLog) breaker(c nixie.BreakerChange) {
	switch {
	case c.Since.IsZero():
		j.log.Info("circuit breaker is closed: messages of the type run again", "type", c.Type, "reason", string(c.Reason))
	case c.Since.Equal(c.At) && !c.Until.IsZero(): // else the worker ends, and says why
		j.log.Warn("circuit breaker is open: of the type only tries run", "type", c.Type, "reason", string(c.Reason),
			"failures", c.Failures, "error", short(c.Text), "next_try", c.Until)
	}
}

// lost notes a lease that another holder has, or that the worker cannot keep, or whose message was
// canceled.
func (j *eventLog) lost(d *nixie.Delivery, why error) {
	if canceled, ok := errors.AsType[*CanceledError](why); ok {
		j.log.Error(short(canceled.Error()), "state", "cancel", "id", d.ID.String(), "type", d.Type)
		return
	}
	if j.news(losing, nixie.CodeLeaseLost) {
		j.log.Error(losing.begun, "state", losing.name, "id", d.ID.String(), "type", d.Type)
	}
}

// late notes a handler that is past its timeout.
func (j *eventLog) late(d *nixie.Delivery, after time.Duration) {
	if j.news(lateHandler, "") {
		j.log.Warn(lateHandler.begun, "state", lateHandler.name, "id", d.ID.String(), "type", d.Type, "timeout", after)
	}
}

// news notes an event of a condition and reports whether it belongs into the log.
func (j *eventLog) news(in condition, code nixie.Code) bool {
	now := j.clock()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.states[in]
	if s == nil {
		s = &episode{begun: now}
		j.states[in] = s
	}
	s.last = now
	s.events++
	if slices.Contains(s.codes, code) {
		return false
	}
	s.codes = append(s.codes, code)
	return true
}

// over ends a condition, if it lasts.
func (j *eventLog) over(in condition) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.states[in]; s != nil {
		j.end(in, s, j.clock())
	}
}

// any reports whether a condition lasts.
func (j *eventLog) any() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.states) > 0
}

// endQuiet ends the conditions that had no event for quietTime, except those of calls.
func (j *eventLog) endQuiet(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for in, s := range j.states {
		if !in.ofCalls() && now.Sub(s.last) >= quietTime {
			j.end(in, s, s.last)
		}
	}
}

// end logs the end of a condition. The caller holds the mutex.
func (j *eventLog) end(in condition, s *episode, at time.Time) {
	delete(j.states, in)
	j.log.Info(in.over, "state", in.name, "events", s.events, "lasted", at.Sub(s.begun).Round(time.Millisecond))
}

// ended logs why a worker ended by itself.
func (j *eventLog) ended(err error) {
	j.log.Error("worker ended", "state", "end", "error", short(err.Error()))
}

// settled logs deaths and outcomes that came too late.
func (j *eventLog) settled(sts []nixie.Settlement, errs []error) {
	var deaths []death
	more := 0
	for i := range sts {
		switch st := &sts[i]; {
		case errs[i] == nil && st.Burial != nil:
			if deaths = died(deaths, st); len(deaths) > mostPerCall {
				deaths = deaths[:mostPerCall]
				more++
			}
		case errs[i] != nil && nixie.CodeOf(errs[i]) == nixie.CodeLeaseLost && !wasCanceled(st.Delivery) &&
			j.news(lateOutcome, nixie.CodeLeaseLost):
			j.log.Error(lateOutcome.begun, "state", lateOutcome.name, "id", st.Delivery.ID.String(), "type", st.Delivery.Type)
		}
	}
	for _, d := range deaths {
		d.log(j.log)
	}
	if more > 0 {
		j.log.Warn("more messages died", "messages", more)
	}
}

// death is a message that died, with the number of deaths of its group in the same call.
type death struct {
	first *nixie.Settlement
	times int
}

// died adds a death to those of the same call.
func died(deaths []death, st *nixie.Settlement) []death {
	for i := range deaths {
		if first := deaths[i].first; first.Burial.Fingerprint == st.Burial.Fingerprint && first.Verb == st.Verb {
			deaths[i].times++
			return deaths
		}
	}
	return append(deaths, death{st, 1})
}

func (d death) log(to *slog.Logger) {
	args := []any{
		"id", d.first.Delivery.ID.String(), "type", d.first.Delivery.Type, "verb", string(d.first.Verb),
		"cause", string(d.first.Burial.Cause), "attempts", d.first.Delivery.Attempts,
	}
	if f := d.first.Failure; f != nil {
		args = append(args, "reason", string(f.Reason), "error", short(f.Text))
	}
	if d.times > 1 {
		args = append(args, "messages", d.times)
	}
	to.Warn("message died", args...)
}

// short cuts a text to the length that a line of the log may have.
func short(s string) string {
	if len(s) <= mostLogged {
		return s
	}
	return strings.ToValidUTF8(s[:mostLogged], "") + "…"
}
