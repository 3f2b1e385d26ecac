package match

import (
	"fmt"

	"github.com/nixie-go/nixie/bench/contest"
)

// verdict is a target with the ratio that was reached.
type verdict struct {
	Name    string  `json:"name"`
	Ratio   float64 `json:"ratio"`
	Want    float64 `json:"want"`
	AtMost  bool    `json:"at_most"`         // the ratio must be Want at most, not at least
	Clock   float64 `json:"clock,omitempty"` // the same by the clock on the wall, which says little on a busy machine
	Against string  `json:"against"`         // the best of its kind
	OK      bool    `json:"ok"`
}

func (v verdict) String() string {
	return fmt.Sprintf("target %s %.2f want %s %s%s", v.Name, v.Ratio, v.wanted(), v.word(), v.note())
}

func (v verdict) wanted() string {
	if v.AtMost {
		return fmt.Sprintf("at most %.2f", v.Want)
	}
	return fmt.Sprintf("%.2f", v.Want)
}

func (v verdict) word() string {
	if v.OK {
		return "ok"
	}
	return "short"
}

// note returns the facts that are printed after the verdict.
func (v verdict) note() string {
	if v.Clock == 0 {
		return fmt.Sprintf(" (against %s)", v.Against)
	}
	return fmt.Sprintf(" (against %s; by the clock %.2f)", v.Against, v.Clock)
}

// judge compares Nixie with the best opponent of a target.
func (r *report) judge(t *Target, nixie string) (v verdict, ok bool) {
	v = verdict{Name: t.Name, Want: max(t.Least, t.Most), AtMost: t.Most > 0}
	own := r.Results[key(t.Scenario, nixie)]
	for name, list := range r.opponents(t, nixie) {
		ratio := t.ratio(own, list)
		if ratio == 0 || ok && !t.harder(ratio, v.Ratio) {
			continue
		}
		v.Ratio, v.Against, ok = ratio, name, true
		if t.Cost == nil && !t.Scenario.Waits() {
			clock := Target{Cost: Clock, Most: t.Most}
			v.Clock = clock.ratio(own, list)
		}
	}
	v.OK = !t.harder(v.Ratio, v.Want)
	return v, ok
}

// opponents returns the results that a target compares with, by name.
func (r *report) opponents(t *Target, nixie string) map[string][]contest.Result {
	if t.Fixed > 0 {
		return map[string][]contest.Result{t.Fixed.String(): r.Results[key(t.Scenario, nixie)]}
	}
	if t.Than != "" {
		return map[string][]contest.Result{string(t.Than): r.Results[key(t.Than, nixie)]}
	}
	lists := map[string][]contest.Result{}
	for _, e := range r.options.entrants {
		if t.Against(&e) {
			lists[e.Name] = r.Results[key(t.Scenario, e.Name)]
		}
	}
	return lists
}

// ratio returns the ratio of a target, 0 if no round measured both.
func (t *Target) ratio(own, other []contest.Result) float64 {
	cost, than := t.Cost, t.ThanCost
	if cost == nil {
		cost = Processor
	}
	if than == nil {
		than = cost
	}
	if t.Fixed > 0 {
		than = func(*contest.Result) float64 { return t.Fixed.Seconds() }
	}
	if t.Most > 0 {
		return ratio(each(than, other), each(cost, own))
	}
	return ratio(each(cost, own), each(than, other))
}

// harder reports whether a ratio is further from the target than another one.
func (t *Target) harder(one, other float64) bool {
	if t.Most > 0 {
		return one > other
	}
	return one < other
}
