package office

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Simulation describes a message whose attempts all fail in the same way, and the policy that
// judges it.
type Simulation struct {
	Policy   policy.Document // the zero value is the default profile
	Type     string          // of the message
	ID       string          // of the message, which gives its waits their jitter; "" simulates without
	Redrives int             // before
	Took     time.Duration   // of each run
	MaxRuns  int             // 0 is all, up to [policy.MaxSimulated]

	Crash  bool         // the holder vanishes at each attempt, and the fields below do not count
	Text   string       // of the error
	Name   string       // of the error, such as RateLimitError
	Code   nixie.Code   // of the error; "" is none
	Reason nixie.Reason // that the handler gives; "" leaves it to the policy
	Class  nixie.Class  // that the handler gives; "" leaves it to the policy
	Exit   *int         // of a command; nil is none

	After time.Duration // the least wait that the error asks for
}

// Check says what is wrong with the description of the failure. Its error begins with the name of
// the field, in small letters.
func (s *Simulation) Check() error {
	switch {
	case s.Code != "" && !slices.Contains(codes(), s.Code):
		return nixie.Errorf(nixie.CodeInvalid, "code is %q: choose one of %v", s.Code, codes())
	case s.Reason != "" && !slices.Contains(nixie.Reasons(), s.Reason):
		return nixie.Errorf(nixie.CodeInvalid, "reason is %q: choose one of %v", s.Reason, nixie.Reasons())
	case s.Class != "" && !slices.Contains(nixie.Classes(), s.Class):
		return nixie.Errorf(nixie.CodeInvalid, "class is %q: choose one of %v", s.Class, nixie.Classes())
	}
	return nil
}

// Simulate plays a simulation that starts at a time, until the message is settled for good or until
// MaxRuns. Errors have [nixie.CodeInvalid].
func Simulate(s *Simulation, start time.Time) ([]SimulatedView, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p, err := s.Policy.Policy()
	if err != nil {
		return nil, err
	}
	inClaim := p.Config().InClaim
	if given := s.Policy.Values("backoff"); len(given) > 0 && len(s.Policy.Values("in-claim")) == 0 {
		longest := inClaim.Backoff.Cap
		if inClaim.Backoff, err = policy.ParseBackoff(given[0]); err != nil {
			return nil, err
		}
		if b := &inClaim.Backoff; b.Cap <= 0 || b.Cap > longest {
			b.Cap = longest
		}
	}
	scenario := policy.Scenario{
		Message: nixie.Message{Type: s.Type, Redrives: s.Redrives},
		InClaim: inClaim, Took: s.Took, MaxRuns: s.MaxRuns, Start: start, Err: s.failure(),
	}
	if s.ID != "" {
		if scenario.Message.ID, err = nixie.ParseID(s.ID); err != nil {
			return nil, err
		}
		scenario.Jitter = true
	}
	runs := policy.Simulate(p, scenario)
	views := make([]SimulatedView, len(runs))
	for i := range runs {
		views[i] = viewSimulated(&runs[i])
	}
	if last := len(runs) - 1; last > 0 && s.MaxRuns == 0 {
		if earliest := policy.Earliest(p, scenario); earliest >= 0 && earliest != runs[last].After-runs[0].After {
			views[last].EarliestMS, views[last].Earliest = earliest.Milliseconds(), exact(earliest.Round(time.Millisecond))
		}
	}
	return views, nil
}

// failure makes the error that the handler of the simulation returns. A holder that vanishes
// returns none.
func (s *Simulation) failure() error {
	if s.Crash {
		return nil
	}
	var err error = &simulatedError{s.Name, s.Text}
	if s.Code != "" {
		err = nixie.Errorf(s.Code, "%w", err)
	}
	if s.Exit != nil {
		err = nixie.WithEvidence(err, nixie.Failure{ExitCode: s.Exit})
	}
	return &nixie.Outcome{Class: s.Class, Reason: s.Reason, After: max(s.After, 0), Err: err}
}

func codes() []nixie.Code {
	return []nixie.Code{
		nixie.CodeNotFound, nixie.CodeConflict, nixie.CodeInvalid, nixie.CodeLeaseLost, nixie.CodeOutcomeUnknown,
		nixie.CodeDenied, nixie.CodeLimit, nixie.CodeUnavailable, nixie.CodeInternal,
	}
}

// simulatedError is the error of a simulation.
type simulatedError struct{ name, text string }

func (e *simulatedError) Error() string { return e.text }

// ErrorName lets a policy match the error by name.
func (e *simulatedError) ErrorName() string { return e.name }

// SimulatedView shows one run of a simulated message. Policy simulate prints it.
type SimulatedView struct {
	Attempt int    `json:"attempt"`
	Run     int    `json:"run"` // within the attempt
	AfterMS int64  `json:"after_ms"`
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Rule    string `json:"rule"` // that decided
	Verb    string `json:"verb"`
	WaitMS  int64  `json:"wait_ms"`
	LeastMS int64  `json:"least_ms"`
	MostMS  int64  `json:"most_ms"`
	Cause   string `json:"cause,omitempty"`
	Status  string `json:"status,omitempty"`
	Channel string `json:"channel_reason,omitempty"`
	Review  bool   `json:"needs_review,omitempty"`
	Redrive bool   `json:"redrivable,omitempty"`

	// Of the last run, when others came before: how long after the first failure a message ends at
	// the earliest, with the shortest waits that jitter can give.
	EarliestMS int64 `json:"earliest_end_ms,omitempty"`

	Earliest string `json:"-"` // EarliestMS in words
	After    string `json:"-"` // when it failed, since the start
	Wait     string `json:"-"` // before the next run; "" is none
	Jitter   string `json:"-"` // the range that jitter can give the wait; "" when it changes nothing
}

func viewSimulated(s *policy.SimulatedRun) SimulatedView {
	most := s.Most.Round(time.Microsecond)
	v := SimulatedView{
		Attempt: s.Attempt, Run: s.Run, AfterMS: s.After.Milliseconds(),
		Class: string(s.Failure.Class), Reason: string(s.Failure.Reason), Rule: s.Rule, Verb: string(s.Verb),
		WaitMS: s.Wait.Milliseconds(), LeastMS: s.Least.Milliseconds(), MostMS: most.Milliseconds(),
		Cause: string(s.Cause), Status: string(s.Status), Channel: s.Channel, Review: s.Review, Redrive: s.Redrivable,
		After: exact(s.After),
	}
	if v.Verb == "" {
		v.Verb = "extend"
		if s.Rule == "in-claim" {
			v.Verb = "run again"
		}
	}
	if s.Wait != 0 || s.Most != 0 {
		v.Wait = exact(s.Wait)
	}
	if s.Least != s.Most {
		v.Jitter = fmt.Sprintf("%s to %s", exact(s.Least), exact(most))
	}
	return v
}

// exact writes a duration exactly, without zero parts at its end.
func exact(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
