package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/worker"
)

// inTime runs the steps of an attempt within the time that all of them have.
func (a *attempt) inTime(ctx context.Context, do func(context.Context) error) error {
	if a.c.Whole == 0 {
		return do(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, a.c.Whole)
	defer cancel()
	err := do(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nixie.WithReason(nixie.Transient(fmt.Errorf("all steps together have %s: %w", a.c.Whole, err)), nixie.ReasonTimeout)
	}
	return err
}

// runFlow runs the i-th step, which is of a workflow file.
func (a *attempt) runFlow(ctx context.Context, i int, _ []string) error {
	if a.known.made == nil {
		if err := a.beginValues(ctx); err != nil {
			return err
		}
	}
	return a.flow(ctx, &a.steps[i])
}

// flow runs a step of a file with its handlers.
func (a *attempt) flow(ctx context.Context, s *step) error {
	if runs, err := a.holds(s); err != nil || !runs {
		return err
	}
	err := a.repeated(ctx, s)
	if err == nil && s.Flow.Validate != nil {
		err = a.validated(ctx, s)
	} else if err != nil && s.OnFailure != nil && fixable(ctx, err) {
		if err = a.handled(ctx, s, err); err != nil && !s.OnFailure.Fails && fixable(ctx, err) {
			a.goesOn(s, err)
			return nil
		}
		if err == nil && s.Flow.Validate != nil {
			err = a.validated(ctx, s)
		}
	}
	if err != nil {
		return err
	}
	return a.list(ctx, s.after, "on_success")
}

// holds reports whether a step should run.
func (a *attempt) holds(s *step) (bool, error) {
	if s.When == nil {
		return true, nil
	}
	all := a.known.object()
	if missing := s.When.Missing(all); len(missing) > 0 {
		return false, nixie.WithReason(nixie.Permanent(nixie.Errorf(nixie.CodeInvalid, "line %d: when: there is no value %s: known are %s",
			s.Line, strings.Join(missing, ", "), strings.Join(a.known.Known(), ", "))), nixie.ReasonValidation)
	}
	return s.When.True(all), nil
}

// fixable reports whether a handler may do something about an error: not if the work has to end,
// and not if the command asked for a verb.
func fixable(ctx context.Context, err error) bool {
	var start *command.StartError
	outcome := nixie.OutcomeOf(err)
	return ctx.Err() == nil && !errors.As(err, &start) && (outcome.Verb == "" || outcome.Verb == nixie.Retry)
}

// goesOn tells that a failure is passed over, as its file wants.
func (a *attempt) goesOn(s *step, err error) {
	f := nixie.Failure{Text: err.Error()}
	if a.c.Mask != nil {
		a.c.Mask(&f)
	}
	a.c.Warn("item %s goes on after step %q, line %d, as fail_workflow is false there: %s", itemID(a.d), s.Label, s.Line, f.Text)
}

// list runs steps one after the other until one fails.
func (a *attempt) list(ctx context.Context, steps []step, of string) error {
	for i := range steps {
		if err := a.flow(ctx, &steps[i]); err != nil {
			return within(err, fmt.Sprintf("%s, line %d: %s", of, steps[i].Line, steps[i].Label))
		}
	}
	return nil
}

// within adds to a failure what was being done.
func within(err error, what string) error {
	var known nixie.Failure
	if evidence := nixie.OutcomeOf(err).Evidence; evidence != nil {
		known = *evidence
	}
	known.Context = append([]string{what}, known.Context...)
	return nixie.WithEvidence(err, known)
}

// repeated runs the command of a step until it succeeds, as often as its retry says.
func (a *attempt) repeated(ctx context.Context, s *step) error {
	run := func(ctx context.Context, _ *nixie.Delivery) error {
		return a.committing(ctx, s.Commits, func() error { return a.once(ctx, s) })
	}
	if s.Retry.MaxAttempts < 2 {
		return run(ctx, a.d)
	}
	again, err := worker.RetryInClaim(nixie.HandlerFunc(run), a.policyOf(a.d.Queue), s.Retry, a.c.Clock)
	if err != nil {
		return err
	}
	return again.Handle(ctx, a.d)
}

// committing does something that may have to commit.
func (a *attempt) committing(ctx context.Context, must bool, do func() error) error {
	if !must {
		return do()
	}
	before, err := a.workplace.Head(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return a.workplace.Committed(ctx, before)
}

// once runs the command of a step.
func (a *attempt) once(ctx context.Context, s *step) error {
	args, values, err := s.Prepare(&a.known)
	if err != nil {
		return err
	}
	c := call{step: s, args: args, timeout: s.Timeout, first: !a.known.ran, tailLimit: command.MaxValue + 1}
	if c.timeout == 0 {
		c.timeout = a.c.Timeout
	}
	if c.own, err = s.Variables(&a.known); err != nil {
		return err
	}
	c.own, c.values = append(a.c.Env[:len(a.c.Env):len(a.c.Env)], c.own...), values
	if c.dir, err = s.Folder(a.workplace.Dir(), &a.known); err != nil {
		return err
	}
	result, err := a.run(ctx, &c)
	a.known.ran = true
	if err != nil {
		a.known.output = outputOf(result.Stdout, result.Stderr)
		return err
	}
	a.known.output = outputOf(result.Stdout)
	return a.capture(s, &result)
}

// handled runs the handler of a failed step, and the step after it, until that succeeds.
func (a *attempt) handled(ctx context.Context, s *step, failed error) error {
	h := s.OnFailure
	for range h.Attempts {
		err := a.committing(ctx, h.Commits, func() error { return a.list(ctx, s.handler, "on_failure") })
		if err != nil {
			if !fixable(ctx, err) {
				return err
			}
			return within(failed, fmt.Sprintf("on_failure, line %d, did not help: %v", h.Line, err))
		}
		if failed = a.repeated(ctx, s); failed == nil || !fixable(ctx, failed) {
			return failed
		}
	}
	return failed
}

// validated measures the work of a step, and lets it be completed.
func (a *attempt) validated(ctx context.Context, s *step) error {
	v := s.Flow.Validate
	defer delete(a.known.made, "validation")
	attempts := 0
	if v.OnIncomplete != nil {
		attempts = v.OnIncomplete.Attempts
	}
	for n := 0; ; n++ {
		percent, err := a.measured(ctx, s)
		switch {
		case err != nil:
			return err
		case percent >= v.Threshold:
			return nil
		case n == attempts:
			err = nixie.WithReason(fmt.Errorf("validate, line %d: the work is complete by %g percent, and threshold is %g: %.200s",
				v.Line, percent, v.Threshold, a.gaps()), nixie.ReasonValidation)
			if v.OnIncomplete != nil && !v.OnIncomplete.Fails {
				a.goesOn(s, err)
				return nil
			}
			return err
		}
		h := v.OnIncomplete
		err = a.committing(ctx, h.Commits, func() error { return a.list(ctx, s.complete, "on_incomplete") })
		if err != nil {
			return err
		}
	}
}

func (a *attempt) gaps() string {
	gaps, _ := a.known.Value("validation.gaps")
	return gaps
}

// measurement is the JSON of a validation.
type measurement struct {
	Percent *float64        `json:"completion_percentage"`
	Gaps    json.RawMessage `json:"gaps"`
	Missing json.RawMessage `json:"missing"`
}

// measured runs the measuring steps, and reads how complete the work is. Steps that fail measure
// nothing: the work is not complete at all.
func (a *attempt) measured(ctx context.Context, s *step) (percent float64, err error) {
	v := s.Flow.Validate
	failed := a.list(ctx, s.measure, "validate")
	if failed != nil && !fixable(ctx, failed) {
		return 0, failed
	}
	text := []byte(a.known.output)
	if v.ResultFile.String() != "" {
		name, err := v.ResultFile.Fill(&a.known)
		if err != nil {
			return 0, err
		}
		text, err = command.TakeInside(a.workplace.Dir(), name, command.MaxValue+1)
		if err != nil {
			return 0, nixie.WithReason(fmt.Errorf("validate, line %d: result_file %s: %w", v.Line, name, err), nixie.ReasonValidation)
		}
	}
	var m measurement
	isResult := json.Unmarshal(text, &m) == nil && m.Percent != nil
	switch {
	case isResult && failed == nil:
		percent = *m.Percent
	case failed != nil:
		m.Gaps, _ = json.Marshal(failed.Error()) // a text is no error
	case v.ResultFile.String() == "" && !json.Valid(text):
		percent = 100 // a plain check
	default:
		return 0, nixie.WithReason(fmt.Errorf("validate, line %d: the result has no completion_percentage: %.80q", v.Line, text),
			nixie.ReasonValidation)
	}
	if m.Gaps == nil {
		m.Gaps = m.Missing
	}
	if m.Gaps == nil {
		m.Gaps = json.RawMessage(`""`)
	}
	a.known.made["validation"], err = json.Marshal(map[string]any{"completion": percent, "gaps": m.Gaps})
	return percent, err
}
