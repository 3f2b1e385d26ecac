package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// simulateFlags describe the failure and the policy of a simulation.
type simulateFlags struct {
	*globals
	policy      policyFlags
	compare     bool
	kind, id    string
	took, after time.Duration
	redrives    int
	crash       bool
	steps       int

	reason, class, code, name, text string
	exit                            int
	exited                          bool
}

func newPolicySimulate(g *globals) *cobra.Command {
	f := &simulateFlags{globals: g}
	cmd := g.command(g.described("policy simulate"), func(context.Context, []string) error {
		f.exited = f.policy.given("exit")
		switch {
		case f.compare && f.policy.given("profile"):
			return usagef("--compare is about all profiles: leave --profile out")
		case f.compare:
			return f.compareAll()
		}
		steps, err := f.simulate("")
		views := make([]stepView, len(steps))
		for i := range steps {
			views[i] = viewStep(steps[i])
		}
		return listed(g, "", stepColumns())(views, err)
	})
	fs := cmd.Flags()
	f.policy.register(fs, "the profile")
	fs.BoolVar(&f.compare, "compare", false, "one line for each profile")
	fs.StringVar(&f.reason, "reason", "", "what the failure is")
	fs.StringVar(&f.class, "class", "", "transient, permanent or unknown")
	fs.StringVar(&f.code, "code", "", "code of the error, such as unavailable")
	fs.StringVar(&f.name, "name", "", "name of the error, such as RateLimitError")
	fs.StringVar(&f.text, "text", "it failed", "text of the error")
	fs.IntVar(&f.exit, "exit", 0, "exit code of a command")
	fs.BoolVar(&f.crash, "crash", false, "the holder vanishes at each attempt")
	fs.DurationVar(&f.after, "retry-after", 0, "least wait that the error asks for")
	fs.DurationVar(&f.took, "took", 0, "how long each run goes on")
	fs.StringVar(&f.kind, "type", "", "type of the message")
	fs.IntVar(&f.redrives, "redrives", 0, "how often it was redriven before")
	fs.StringVar(&f.id, "id", "", "ID of the message, which fixes its jitter")
	fs.IntVar(&f.steps, "steps", 0, "most lines to print; 0 is all")
	return cmd
}

// simulate plays the scenario of the flags; name replaces the profile if it is not empty.
func (f *simulateFlags) simulate(name string) ([]policy.SimulatedRun, error) {
	said, err := f.policy.document()
	if err == nil && name != "" {
		said, err = said.With("profile", name)
	}
	if err != nil {
		return nil, err
	}
	p, err := said.Policy()
	if err != nil {
		return nil, err
	}
	profile, err := policy.ProfileNamed(p.Config().Profile)
	if err != nil {
		return nil, err
	}
	if f.policy.given("backoff") {
		longest := profile.InClaim.Backoff.Cap
		if profile.InClaim.Backoff, err = policy.ParseBackoff(said.Values("backoff")[0]); err != nil {
			return nil, err
		}
		if b := &profile.InClaim.Backoff; b.Cap <= 0 || b.Cap > longest {
			b.Cap = longest
		}
	}
	s := policy.Scenario{
		Message: nixie.Message{Type: f.kind, Redrives: f.redrives},
		InClaim: profile.InClaim, Took: f.took, MaxRuns: f.steps, Start: f.Now(),
	}
	if f.id != "" {
		if s.Message.ID, err = nixie.ParseID(f.id); err != nil {
			return nil, err
		}
		s.Jitter = true
	}
	if err := f.fail(&s); err != nil {
		return nil, err
	}
	return policy.Simulate(p, s), nil
}

// fail makes the error that the handler of the simulation returns. A holder that vanishes returns
// none.
func (f *simulateFlags) fail(s *policy.Scenario) error {
	if f.crash {
		return nil
	}
	var err error = &simulatedError{f.name, f.text}
	if f.code != "" {
		if !slices.Contains(codes(), nixie.Code(f.code)) {
			return usagef("--code is %q: choose one of %v", f.code, codes())
		}
		err = nixie.Errorf(nixie.Code(f.code), "%w", err)
	}
	if f.exited {
		err = nixie.WithEvidence(err, nixie.Failure{ExitCode: &f.exit})
	}
	if f.reason != "" && !slices.Contains(nixie.Reasons(), nixie.Reason(f.reason)) {
		return usagef("--reason is %q: choose one of %v", f.reason, nixie.Reasons())
	}
	if f.class != "" && !slices.Contains(nixie.Classes(), nixie.Class(f.class)) {
		return usagef("--class is %q: choose one of %v", f.class, nixie.Classes())
	}
	s.Err = &nixie.Outcome{Class: nixie.Class(f.class), Reason: nixie.Reason(f.reason), After: max(f.after, 0), Err: err}
	return nil
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

// stepView is the JSON of one step.
type stepView struct {
	Attempt int    `json:"attempt"`
	Run     int    `json:"run"`
	AfterMS int64  `json:"after_ms"`
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Rule    string `json:"rule"`
	Verb    string `json:"verb"`
	WaitMS  int64  `json:"wait_ms"`
	LeastMS int64  `json:"least_ms"`
	MostMS  int64  `json:"most_ms"`
	Cause   string `json:"cause,omitempty"`
	Status  string `json:"status,omitempty"`
	Channel string `json:"channel_reason,omitempty"`
	Review  bool   `json:"needs_review,omitempty"`
	Redrive bool   `json:"redrivable,omitempty"`

	step policy.SimulatedRun
}

func viewStep(s policy.SimulatedRun) stepView {
	return stepView{
		Attempt: s.Attempt, Run: s.Run, AfterMS: s.After.Milliseconds(),
		Class: string(s.Failure.Class), Reason: string(s.Failure.Reason), Rule: s.Rule, Verb: verbWord(s),
		WaitMS: s.Wait.Milliseconds(), LeastMS: s.Least.Milliseconds(), MostMS: s.Most.Round(time.Microsecond).Milliseconds(),
		Cause: string(s.Cause), Status: string(s.Status), Channel: s.Channel, Review: s.Review, Redrive: s.Redrivable, step: s,
	}
}

// verbWord names the next action.
func verbWord(s policy.SimulatedRun) string {
	switch {
	case s.Verb != "":
		return string(s.Verb)
	case s.Rule == "in-claim":
		return "run again"
	}
	return "extend"
}

// stepColumns are the columns of a simulation. An empty cell shows a dash.
func stepColumns() []column[stepView] {
	type v = stepView
	text := func(name, show string, cell func(*v) string) column[v] {
		return column[v]{name: name, show: show, cell: func(s *v) string { return orDash(cell(s)) }}
	}
	return []column[v]{
		{name: "attempt"},
		{name: "run"},
		text("after", "", func(s *v) string { return exact(s.step.After) }),
		text("class", asWide, func(s *v) string { return s.Class }),
		text("reason", "", func(s *v) string { return s.Reason }),
		text("rule", "", func(s *v) string { return s.Rule }),
		text("verb", "", func(s *v) string { return s.Verb }),
		text("wait", "", func(s *v) string { return waitWord(s.step) }),
		text("jitter", "", func(s *v) string { return bandWord(s.step) }),
		text("cause", "", func(s *v) string { return s.Cause }),
		text("status", asWide, func(s *v) string { return s.Status }),
		text("channel_reason", asWide, func(s *v) string { return s.Channel }),
	}
}

func waitWord(s policy.SimulatedRun) string {
	if s.Wait == 0 && s.Most == 0 {
		return ""
	}
	return exact(s.Wait)
}

// bandWord writes the range that jitter can give a wait, if it can change it.
func bandWord(s policy.SimulatedRun) string {
	if s.Least == s.Most {
		return ""
	}
	return fmt.Sprintf("%s to %s", exact(s.Least), exact(s.Most.Round(time.Microsecond)))
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

// comparison is the JSON of one profile in --compare.
type comparison struct {
	Profile string   `json:"profile"`
	Waits   []string `json:"waits"`
	End     string   `json:"end"`
	Cause   string   `json:"cause,omitempty"`
	Runs    int      `json:"runs"`
	AfterMS int64    `json:"after_ms"`

	after time.Duration
}

func (f *simulateFlags) compareAll() error {
	type v = comparison
	var all []v
	for _, name := range policy.Profiles() {
		steps, err := f.simulate(name)
		if err != nil {
			return err
		}
		c := v{Profile: name, Waits: []string{}, Runs: len(steps)}
		for _, s := range steps {
			if w := waitWord(s); w != "" {
				c.Waits = append(c.Waits, w)
			}
			c.End, c.Cause, c.after = verbWord(s), string(s.Cause), s.After
		}
		c.AfterMS = c.after.Milliseconds()
		all = append(all, c)
	}
	return listed(f.globals, "", []column[v]{
		{name: "profile"}, {name: "runs"},
		{name: "waits", cell: func(c *v) string { return orDash(strings.Join(c.Waits, " ")) }, kind: flex},
		{name: "end"},
		{name: "cause", cell: func(c *v) string { return orDash(c.Cause) }},
		{name: "after", cell: func(c *v) string { return exact(c.after) }},
	})(all, nil)
}
