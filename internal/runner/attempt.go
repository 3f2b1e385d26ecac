package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
)

// Workplace is where the commands of one attempt work.
type Workplace interface {
	Dir() string
	Environ() []string  // what commands inherit
	ItemFile() string   // a path for the item, outside Dir
	LogFile() string    // a path for what agents have to tell, outside Dir
	ResultFile() string // a path for what the item comes to, outside Dir
	// Check is told that the steps have succeeded, and says whether what they left is
	// what they were to leave.
	Check(ctx context.Context) error
	// End is told how the attempt went, and says how it ends. It is called once, also
	// when ctx has ended: then the item comes back.
	End(ctx context.Context, err error) error
}

// attempt is one of an item.
type attempt struct {
	*Runner
	d       *nixie.Delivery
	item    items.Stored
	place   Workplace // nil: where this process is
	env     command.Environment
	printed *Printed // nil: what is printed is thrown away
}

// attempt runs the steps of one item.
func (r *Runner) attempt(ctx context.Context, d *nixie.Delivery) error {
	if d.Type == typeBad {
		return nixie.WithReason(nixie.Permanent(errors.New(d.Header(headerError))), nixie.ReasonSerialization)
	}
	a := attempt{Runner: r, d: d, item: items.OpenStored(d.Body, d.Type == typeLine), env: r.env}
	args, err := a.arguments()
	if err != nil {
		return err
	}
	if r.c.Show != nil {
		a.printed = &Printed{Item: itemID(d), ID: d.ID}
		defer r.printed.keep(a.printed)
	}
	if r.c.Workplace == nil {
		return a.runAll(ctx, args)
	}
	if a.place, err = r.c.Workplace(ctx, d); err != nil || a.place == nil {
		return err
	}
	a.env = command.NewEnvironment(a.place.Environ())
	return a.place.End(ctx, a.runIn(ctx, args))
}

// arguments are those of each step.
func (a *attempt) arguments() ([][]string, error) {
	all := make([][]string, len(a.steps))
	for i := range a.steps {
		var err error
		if all[i], err = a.steps[i].Expand(a.fields(a.d, a.item)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// runIn runs the steps in a workplace: those that validate once what the others left is
// what it was to be.
func (a *attempt) runIn(ctx context.Context, args [][]string) error {
	if err := os.WriteFile(a.place.ItemFile(), a.d.Body, 0o600); err != nil {
		return nixie.WithReason(nixie.Transient(fmt.Errorf("file of the item: %w", err)), nixie.ReasonResource)
	}
	work := len(a.steps)
	if a.c.Validate != nil {
		work--
	}
	if err := a.runAll(ctx, args[:work]); err != nil {
		return err
	}
	if err := a.place.Check(ctx); err != nil || work == len(args) {
		return err
	}
	return a.facts(invalid(a.run(ctx, work, args[work])), work)
}

// invalid makes an exit code that says nothing else the failure of a validation.
func invalid(err error) error {
	if nixie.OutcomeOf(err).Reason == nixie.ReasonCommandFailed {
		return nixie.WithReason(err, nixie.ReasonValidation)
	}
	return err
}

// runAll runs steps one after the other until one fails.
func (a *attempt) runAll(ctx context.Context, args [][]string) error {
	for i := range args {
		if err := a.run(ctx, i, args[i]); err != nil {
			return a.facts(err, i)
		}
		if name := a.steps[i].Label; name != "" {
			if err := a.d.Step(name, func() error { return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// facts says beside a failure in which step it was, and the trail that led there,
// outermost first.
func (a *attempt) facts(err error, i int) error {
	name := a.steps[i].Label
	if err == nil || name == "" {
		return err
	}
	var known nixie.Failure
	if evidence := nixie.OutcomeOf(err).Evidence; evidence != nil {
		known = *evidence
	}
	known.Step, known.Context = name, []string{"item " + itemID(a.d), fmt.Sprintf("step %d of %d", i+1, len(a.steps))}
	return nixie.WithEvidence(err, known)
}

// run runs the i-th step, and judges how it ended.
func (a *attempt) run(ctx context.Context, i int, args []string) error {
	step := &a.steps[i]
	verdictPath := a.verdicts + "/" + a.d.ID.String() + "-" + strconv.FormatInt(a.d.Lease.Number, 10)
	variables := a.variables(a.d)
	variables.Verdict = verdictPath
	a.item.Scalars(func(name, value string) {
		variables.Fields = append(variables.Fields, command.Field{Name: name, Value: value})
	})
	spec := command.Spec{Args: args, Path: step.path, Stdin: a.d.Body, Timeout: a.c.Timeout, Grace: commandGrace, Guard: a.guard}
	if a.place != nil {
		spec.Dir, variables.ItemFile, variables.ResultFile = a.place.Dir(), a.place.ItemFile(), a.place.ResultFile()
		if step.Logs {
			variables.LogFile = a.place.LogFile()
		}
	}
	spec.Env = a.env.For(variables)
	if a.printed != nil {
		spec.Stdout, spec.Stderr = &a.printed.Stdout, &a.printed.Stderr
	}
	result, err := command.Run(ctx, spec)
	if err != nil {
		return err
	}
	if i == 0 {
		a.count.attempts.Add(1)
	}
	verdict, broken := command.ReadVerdict(verdictPath)
	if broken != nil {
		return result.JudgeBroken(broken, a.c.PermanentExit)
	}
	if verdict != nil {
		for _, step := range verdict.Steps {
			if err := a.d.Step(step, func() error { return nil }); err != nil {
				return result.JudgeBroken(err, a.c.PermanentExit)
			}
		}
	}
	return result.Judge(verdict, a.c.PermanentExit)
}
