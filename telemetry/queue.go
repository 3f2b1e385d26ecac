package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nixie-go/nixie"
)

// The closed lists of labels that the root package does not list.
var (
	verbs         = [...]nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt}
	breakerStates = []string{"open", "half-open", "closed"}
	outcomes      = []string{"queued", "sent", "refused", "succeeded", "died"}
)

// completed is the index of Complete in verbs.
const completed = 0

// queue has the counters of one queue, so that events need not search for them by label. They are
// there from the first event on, with 0: a rate sees an increase only from a number that it knows.
type queue struct {
	label string

	enqueued, received, extended, refused, crashes, leaseLost, late, trouble prometheus.Counter

	settled  []prometheus.Counter // as verbs, and one for others
	attempts []*distribution      // as settled
	redriven map[string]prometheus.Counter
	handlers *distribution
}

func (m *Metrics) newQueue(label string) *queue {
	of := func(name string, more ...string) prometheus.Counter {
		return m.counters[name].WithLabelValues(append([]string{label}, more...)...)
	}
	q := &queue{
		label: label, enqueued: of("enqueued_total"), received: of("received_total"), extended: of("extended_total"),
		refused: of("refused_total"), crashes: of("crashes_total"), leaseLost: of("lease_lost_total"), late: of("late_total"),
		trouble: of("trouble_total"), redriven: map[string]prometheus.Counter{}, handlers: m.handlers.of(label),
	}
	for _, verb := range append(verbs[:len(verbs):len(verbs)], other) {
		q.settled = append(q.settled, of("settled_total", string(verb)))
		q.attempts = append(q.attempts, m.attempts.of(label, string(verb)))
	}
	for _, outcome := range outcomes {
		q.redriven[outcome] = of("redriven_total", outcome)
	}
	for _, state := range breakerStates {
		of("breaker_transitions_total", state)
	}
	return q
}

// settle counts settlements of one queue: it adds up a slice before it touches what is shared.
func (m *Metrics) settle(q *queue, sts []nixie.Settlement, errs []error) {
	var times, firsts tally
	var counts [len(verbs) + 1]int
	refused := 0
	for i := range sts {
		st := &sts[i]
		if errs[i] != nil {
			if nixie.CodeOf(errs[i]) == nixie.CodeLeaseLost {
				refused++
			}
			continue
		}
		verb := indexOf(st.Verb)
		counts[verb]++
		if st.Took > 0 {
			times.add(q.handlers.bounds, int64(st.Took))
		}
		if verb == completed {
			firsts.add(q.attempts[completed].bounds, int64(st.Delivery.Attempts))
		} else if st.Verb != nixie.Retry && st.Verb != nixie.Release {
			q.attempts[verb].take(one(q.attempts[verb].bounds, int64(st.Delivery.Attempts)))
		}
		if verb != completed || st.Delivery.Redrives > 0 {
			m.exception(q, st)
		}
	}
	for verb, n := range counts {
		if n > 0 {
			q.settled[verb].Add(float64(n))
		}
	}
	if refused > 0 {
		q.refused.Add(float64(refused))
	}
	q.handlers.take(&times)
	q.attempts[completed].take(&firsts)
}

// exception counts what is rare: failures, deaths and the ends of redriven messages.
func (m *Metrics) exception(q *queue, st *nixie.Settlement) {
	reason := nixie.ReasonUnknown
	if f := st.Failure; f != nil {
		reason = f.Reason
		m.counters["failures_total"].WithLabelValues(q.label, listed(m.classes, f.Class), listed(m.reasons, reason)).Inc()
	}
	if st.Burial != nil {
		m.counters["dead_total"].WithLabelValues(q.label, listed(m.causes, st.Burial.Cause), listed(m.reasons, reason)).Inc()
	}
	switch {
	case st.Delivery.Redrives == 0:
	case st.Burial != nil:
		q.redriven["died"].Inc()
	case st.Verb == nixie.Complete:
		q.redriven["succeeded"].Inc()
	}
}

// indexOf returns the index of a verb in verbs, and len(verbs) for others.
func indexOf(v nixie.Verb) int {
	for i := range verbs {
		if verbs[i] == v {
			return i
		}
	}
	return len(verbs)
}
