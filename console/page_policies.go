package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/office"
)

// Bounds of the page of policies.
const (
	runsShown    = 100 // of a simulation
	queuesListed = 200 // that have a policy of their own, or that a list offers
	maxSaid      = 4 << 10
)

func policiesPage() page {
	return page{path: "policies", title: "Policies", menu: "policies", file: "policies", show: (*console).showPolicies}
}

// policiesData is one policy, what it says about a failure, and what policies there are.
type policiesData struct {
	Queue, Profile string
	Error          errorForm
	Runs           []office.SimulatedView // nil: nothing was asked
	At             int                    // index of the run that the verdict is about
	Cut            bool                   // there are more runs
	Values         []office.PolicyRow
	Own            []office.QueueView // queues with a policy of their own
	More           int                // such queues that are not among them
	Profiles       []office.ProfileView
	Names          []string // of queues
	Reasons        []nixie.Reason
	Classes        []nixie.Class
}

// errorForm is the error that an operator pastes.
type errorForm struct {
	Text, Name, Type, Reason, Class string
	Exit, Wait, Attempt             string
	Crash                           bool
}

// Verdict is the run that was asked about.
func (d *policiesData) Verdict() office.SimulatedView { return d.Runs[d.At] }

// End is the last run.
func (d *policiesData) End() office.SimulatedView { return d.Runs[len(d.Runs)-1] }

func (c *console) showPolicies(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := policiesData{Queue: r.FormValue("queue"), Profile: r.FormValue("profile"), Reasons: nixie.Reasons(), Classes: nixie.Classes()}
	queues, err := c.office.Queues(ctx)
	if err != nil {
		return answer{}, err
	}
	for i := range queues {
		if len(d.Names) < queuesListed {
			d.Names = append(d.Names, queues[i].Name)
		}
		switch {
		case queues[i].Settings.Policy == "":
		case len(d.Own) == queuesListed:
			d.More++
		default:
			d.Own = append(d.Own, c.office.ViewQueue(&queues[i]))
		}
	}
	for _, name := range office.Profiles() {
		v, err := office.ViewProfile(name)
		if err != nil {
			return answer{}, err
		}
		d.Profiles = append(d.Profiles, v)
	}
	s := office.Simulation{MaxRuns: runsShown + 1}
	switch {
	case d.Queue != "" && d.Profile != "":
		return answer{}, nixie.Errorf(nixie.CodeInvalid,
			"both a queue and a profile are chosen: choose one, a queue has a profile of its own")
	case d.Queue != "":
		s.Policy, err = c.office.PolicyDocument(ctx, d.Queue)
	default:
		s.Policy, err = office.ProfileDocument(d.Profile)
	}
	if err != nil {
		return answer{}, err
	}
	if d.Values, err = office.PolicyTable(s.Policy); err != nil {
		return answer{}, err
	}
	return answer{Data: &d}, c.simulate(r, &d, &s)
}

// simulate plays what the form describes, if it describes anything.
func (c *console) simulate(r *http.Request, d *policiesData, s *office.Simulation) error {
	value := func(name string) string { return strings.TrimSpace(r.FormValue(name)) }
	f := &d.Error
	*f = errorForm{Text: r.FormValue("text"), Name: value("name"), Type: value("type"), Reason: value("reason"), Class: value("class"),
		Exit: value("exit"), Wait: value("wait"), Attempt: value("attempt"), Crash: value("crash") != ""}
	if *f == (errorForm{}) {
		return nil
	}
	if len(f.Text) > maxSaid {
		return nixie.Errorf(nixie.CodeLimit, "text has %d bytes, the limit is %d: shorten it", len(f.Text), maxSaid)
	}
	s.Text, s.Name, s.Type, s.Crash = f.Text, f.Name, f.Type, f.Crash
	s.Reason, s.Class = nixie.Reason(f.Reason), nixie.Class(f.Class)
	if f.Exit != "" {
		code, err := strconv.Atoi(f.Exit)
		if err != nil {
			return nixie.Errorf(nixie.CodeInvalid, "exit code is %q: give a number, or nothing", f.Exit)
		}
		s.Exit = &code
	}
	var err error
	if f.Wait != "" {
		if s.After, err = filter.ParseDuration(f.Wait); err != nil {
			return nixie.Errorf(nixie.CodeInvalid, "the wait is %q: give a duration such as 30s, or nothing", f.Wait)
		}
	}
	attempt := 1
	if f.Attempt != "" {
		if attempt, err = strconv.Atoi(f.Attempt); err != nil || attempt < 1 {
			return nixie.Errorf(nixie.CodeInvalid, "the attempt is %q: give a number from 1, or nothing", f.Attempt)
		}
	}
	if d.Runs, err = office.Simulate(s, c.Clock()); err != nil {
		return err
	}
	if d.Cut = len(d.Runs) > runsShown; d.Cut {
		d.Runs = d.Runs[:runsShown]
	}
	for i := range d.Runs {
		if d.Runs[i].Attempt <= attempt {
			d.At = i // the last run of that attempt decides
		}
	}
	return nil
}
