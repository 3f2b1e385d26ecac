package worker

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// state is something that goes wrong for a while.
type state struct{ name, begun, over string }

// The states. Each is told when it begins, and when it is over.
var (
	receiving = state{"receive", "nothing can be received; it is tried again", "messages are received again"}
	renewing  = state{"renew", "leases cannot be renewed; it is tried again", "leases are renewed again"}
	settling  = state{"settle", "outcomes cannot be settled", "outcomes are settled again"}
	ruling    = state{"policy", "the policy of the queue cannot be looked up; the last one holds", "the policy of the queue is known again"}
	losing    = state{"lease", "a lease was lost: others get the message", "leases hold again"}
	tardy     = state{"late", "an outcome came too late and does not count", "outcomes come in time again"}
	overdue   = state{"timeout", "a handler goes on after its timeout", "handlers end in time again"}
	failing   = state{"other", "something unexpected", "nothing unexpected any more"}
)

// ofCalls reports whether the state ends with a call that succeeds.
func (s state) ofCalls() bool {
	switch s {
	case receiving, renewing, settling, ruling:
		return true
	}
	return false
}

// Bounds of what is logged.
const (
	calm        = time.Minute // without an event, then what comes message by message is over
	mostLogged  = 500         // bytes of a text
	mostPerCall = 10          // kinds of death of one settling that get a line
)

// journal writes what a person has to know into the log: deaths one by one, trouble
// once for each state. It is safe for concurrent use.
type journal struct {
	log   *slog.Logger
	clock func() time.Time

	mu     sync.Mutex
	states map[state]*spell
}

// spell is a state that lasts.
type spell struct {
	codes  []nixie.Code // of its errors that were told
	begun  time.Time
	last   time.Time
	events int
}

func newJournal(log *slog.Logger, queue string, clock func() time.Time) *journal {
	if queue != "" {
		log = log.With("queue", queue)
	}
	return &journal{log: log, clock: clock, states: map[state]*spell{}}
}

// trouble tells the observer, and the log when the state is new.
func (c *Config) trouble(in state, err error) {
	c.Observer.OnTrouble(c.Queue, err)
	c.journal.trouble(in, err)
}

// trouble notes an error of a state. An error of another code is news too.
func (j *journal) trouble(in state, err error) {
	if code := nixie.CodeOf(err); j.news(in, code) {
		j.log.Error(in.begun, "state", in.name, "code", string(code), "error", short(err.Error()))
	}
}

// lost notes a lease that is not ours any more, or cannot be kept.
func (j *journal) lost(d *nixie.Delivery) {
	if j.news(losing, nixie.CodeLeaseLost) {
		j.log.Error(losing.begun, "state", losing.name, "id", d.ID.String(), "type", d.Type)
	}
}

// late notes a handler that is past its timeout.
func (j *journal) late(d *nixie.Delivery, after time.Duration) {
	if j.news(overdue, "") {
		j.log.Warn(overdue.begun, "state", overdue.name, "id", d.ID.String(), "type", d.Type, "timeout", after)
	}
}

// news notes an event of a state and reports whether it is to be told.
func (j *journal) news(in state, code nixie.Code) bool {
	now := j.clock()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.states[in]
	if s == nil {
		s = &spell{begun: now}
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

// over ends a state, if it lasts.
func (j *journal) over(in state) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.states[in]; s != nil {
		j.end(in, s, j.clock())
	}
}

// rest ends the states of which nothing was heard for a while. Those of calls end
// with a call that succeeds.
func (j *journal) rest(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for in, s := range j.states {
		if !in.ofCalls() && now.Sub(s.last) >= calm {
			j.end(in, s, s.last)
		}
	}
}

// end tells that a state is over. The mutex is held.
func (j *journal) end(in state, s *spell, at time.Time) {
	delete(j.states, in)
	j.log.Info(in.over, "state", in.name, "events", s.events, "lasted", at.Sub(s.begun).Round(time.Millisecond))
}

// ended tells why a worker ended by itself.
func (j *journal) ended(err error) { j.log.Error("worker ended", "error", short(err.Error())) }

// settled tells of deaths and of outcomes that came too late.
func (j *journal) settled(sts []nixie.Settlement, errs []error) {
	var deaths []death
	more := 0
	for i := range sts {
		switch st := &sts[i]; {
		case errs[i] == nil && st.Burial != nil:
			if deaths = died(deaths, st); len(deaths) > mostPerCall {
				deaths = deaths[:mostPerCall]
				more++
			}
		case errs[i] != nil && nixie.CodeOf(errs[i]) == nixie.CodeLeaseLost && j.news(tardy, nixie.CodeLeaseLost):
			j.log.Error(tardy.begun, "state", tardy.name, "id", st.Delivery.ID.String(), "type", st.Delivery.Type)
		}
	}
	for _, d := range deaths {
		d.log(j.log)
	}
	if more > 0 {
		j.log.Warn("more messages died", "messages", more)
	}
}

// death is one message that died, and how many died together of the same.
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

// short is a text as long as a line of a log may have it.
func short(s string) string {
	if len(s) <= mostLogged {
		return s
	}
	return strings.ToValidUTF8(s[:mostLogged], "") + "…"
}
