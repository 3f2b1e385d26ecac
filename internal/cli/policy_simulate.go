package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/policy"
)

// simulateFlags describe the failure and the policy of a simulation.
type simulateFlags struct {
	*globals
	policy policyFlags
	office.Simulation
	compare             bool
	reason, class, code string
	exit                int
}

func newPolicySimulate(g *globals) *cobra.Command {
	f := &simulateFlags{globals: g}
	cmd := g.command(g.described("policy simulate"), func(context.Context, []string) error {
		switch {
		case f.compare && f.policy.given("profile"):
			return usagef("--compare is about all profiles: leave --profile out")
		case f.compare:
			return f.compareAll()
		}
		steps, err := f.simulate("")
		if err := listed(g, "", stepColumns())(steps, err); err != nil || len(steps) == 0 || g.output != asTable && g.output != asWide {
			return err
		}
		if last := steps[len(steps)-1]; last.Earliest != "" {
			fmt.Fprintf(g.Out, "ends %s after its first failure at the earliest\n", last.Earliest)
		}
		return nil
	})
	fs := cmd.Flags()
	f.policy.register(fs, "the profile")
	fs.BoolVar(&f.compare, "compare", false, "one line for each profile")
	fs.StringVar(&f.reason, "reason", "", "what the failure is")
	fs.StringVar(&f.class, "class", "", "transient, permanent or unknown")
	fs.StringVar(&f.code, "code", "", "code of the error, such as unavailable")
	fs.StringVar(&f.Name, "name", "", "name of the error, such as RateLimitError")
	fs.StringVar(&f.Text, "text", "it failed", "text of the error")
	fs.IntVar(&f.exit, "exit", 0, "exit code of a command")
	fs.BoolVar(&f.Crash, "crash", false, "the holder vanishes at each attempt")
	durationVar(fs, &f.After, "retry-after", 0, "least wait that the error asks for")
	durationVar(fs, &f.Took, "took", 0, "how long each run goes on")
	fs.StringVar(&f.Type, "type", "", "type of the message")
	fs.IntVar(&f.Redrives, "redrives", 0, "how often it was redriven before")
	fs.StringVar(&f.ID, "id", "", "ID of the message, which fixes its jitter")
	fs.IntVar(&f.MaxRuns, "steps", 0, "most lines to print; 0 is all")
	return cmd
}

// simulate plays the simulation of the flags; name replaces the profile if it is not empty.
func (f *simulateFlags) simulate(name string) ([]office.SimulatedView, error) {
	said, err := f.policy.document()
	if err == nil && name != "" {
		said, err = said.With("profile", name)
	}
	if err != nil {
		return nil, err
	}
	f.Policy, f.Reason, f.Class, f.Code = said, nixie.Reason(f.reason), nixie.Class(f.class), nixie.Code(f.code)
	if f.policy.given("exit") {
		f.Exit = &f.exit
	}
	if err := f.Check(); err != nil && !f.Crash {
		return nil, usagef("--%v", err)
	}
	return office.Simulate(&f.Simulation, f.Now())
}

// stepColumns are the columns of a simulation. An empty cell shows a dash.
func stepColumns() []column[office.SimulatedView] {
	type v = office.SimulatedView
	text := func(name, show string, cell func(*v) string) column[v] {
		return column[v]{name: name, show: show, cell: func(s *v) string { return orDash(cell(s)) }}
	}
	return []column[v]{
		{name: "attempt"},
		{name: "run"},
		text("after", "", func(s *v) string { return s.After }),
		text("class", asWide, func(s *v) string { return s.Class }),
		text("reason", "", func(s *v) string { return s.Reason }),
		text("rule", "", func(s *v) string { return s.Rule }),
		text("verb", "", func(s *v) string { return s.Verb }),
		text("wait", "", func(s *v) string { return s.Wait }),
		text("jitter", "", func(s *v) string { return s.Jitter }),
		text("cause", "", func(s *v) string { return s.Cause }),
		text("status", asWide, func(s *v) string { return s.Status }),
		text("channel_reason", asWide, func(s *v) string { return s.Channel }),
	}
}

// comparison is the JSON of one profile in --compare.
type comparison struct {
	Profile string   `json:"profile"`
	Waits   []string `json:"waits"`
	End     string   `json:"end"`
	Cause   string   `json:"cause,omitempty"`
	Runs    int      `json:"runs"`
	AfterMS int64    `json:"after_ms"`

	after string
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
			if s.Wait != "" {
				c.Waits = append(c.Waits, s.Wait)
			}
			c.End, c.Cause, c.AfterMS, c.after = s.Verb, s.Cause, s.AfterMS, s.After
		}
		all = append(all, c)
	}
	return listed(f.globals, "", []column[v]{
		{name: "profile"}, {name: "runs"},
		{name: "waits", cell: func(c *v) string { return orDash(strings.Join(c.Waits, " ")) }, kind: flex},
		{name: "end"},
		{name: "cause", cell: func(c *v) string { return orDash(c.Cause) }},
		{name: "after", cell: func(c *v) string { return c.after }},
	})(all, nil)
}
