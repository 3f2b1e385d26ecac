package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
)

// Workplace gives the commands of one attempt a folder, an environment and files.
type Workplace interface {
	Dir() string
	Environ() []string  // what commands inherit
	ItemFile() string   // a path for the item, outside Dir
	LogFile() string    // a path for the log of agents, outside Dir; kept with a failure
	ResultFile() string // a path for the result of the item, outside Dir
	// Head returns the commit that is checked out; Committed an error if it is still that one.
	Head(ctx context.Context) (string, error)
	Committed(ctx context.Context, since string) error
	// Check is called after the steps have succeeded. It returns an error when they left the
	// workplace otherwise than they should.
	Check(ctx context.Context) error
	// End gets the outcome of the attempt and returns its final outcome. It is called once, also
	// when ctx has ended: then the item comes back.
	End(ctx context.Context, err error) error
}

// attempt executes one item once.
type attempt struct {
	*Runner
	d         *nixie.Delivery
	item      items.Stored
	workplace Workplace // nil: the folder of this process
	env       command.Environment
	printed   *Printed // nil: output is thrown away
	known     values   // of steps of a workflow file
}

// attempt runs the steps of one item.
func (r *Runner) attempt(ctx context.Context, d *nixie.Delivery) error {
	if d.Type == typeBad {
		return nixie.WithReason(nixie.Permanent(errors.New(d.Header(headerError))), nixie.ReasonSerialization)
	}
	a := attempt{Runner: r, d: d, item: items.OpenStored(d.Body, d.Type == typeLine), env: r.env}
	d.Tracking.Then = nil // of a run in the same claim that failed
	args, err := a.arguments()
	if err != nil {
		return err
	}
	if r.c.Show != nil || r.wantsAnswer(d) {
		a.printed = &Printed{Item: itemID(d), ID: d.ID}
		defer r.printed.keep(a.printed)
	}
	if r.c.Workplace == nil {
		if err := a.runAll(ctx, args); err != nil {
			return err
		}
		if r.logs {
			a.endLog()
		}
		return a.answer()
	}
	return r.withRoom(ctx, func() error {
		if a.workplace, err = r.c.Workplace(ctx, d); err != nil || a.workplace == nil {
			return err
		}
		a.env = command.NewEnvironment(a.workplace.Environ())
		return a.workplace.End(ctx, a.inTime(ctx, func(ctx context.Context) error { return a.runInWorkplace(ctx, args) }))
	})
}

// arguments returns the arguments of each step.
func (a *attempt) arguments() ([][]string, error) {
	all := make([][]string, len(a.steps))
	for i := range a.steps {
		if a.steps[i].Flow != nil { // its values may come of the steps before
			continue
		}
		var err error
		if all[i], err = a.steps[i].Expand(a.fields(a.d, a.item)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// runInWorkplace runs the steps in a workplace. It runs the validating step after the workplace has
// checked the work of the others.
func (a *attempt) runInWorkplace(ctx context.Context, args [][]string) error {
	if err := os.WriteFile(a.workplace.ItemFile(), a.d.Body, 0o600); err != nil {
		return nixie.WithReason(nixie.Transient(fmt.Errorf("file of the item: %w", err)), nixie.ReasonResource)
	}
	work := len(a.steps)
	if a.c.Validate != nil {
		work--
	}
	if err := a.runAll(ctx, args[:work]); err != nil {
		return err
	}
	if err := a.workplace.Check(ctx); err != nil {
		return err
	}
	if work == len(args) {
		return a.keepValues(ctx)
	}
	return a.withStep(invalid(a.runStep(ctx, work, args[work])), work)
}

// runCommitting runs a step that has to commit.
func (a *attempt) runCommitting(ctx context.Context, i int, args []string) error {
	before, err := a.workplace.Head(ctx)
	if err != nil {
		return err
	}
	if err := a.runStep(ctx, i, args); err != nil {
		return err
	}
	return a.workplace.Committed(ctx, before)
}

// invalid makes a plain exit code the failure of a validation.
func invalid(err error) error {
	if nixie.OutcomeOf(err).Reason == nixie.ReasonCommandFailed {
		return nixie.WithReason(err, nixie.ReasonValidation)
	}
	return err
}

// runAll runs steps one after the other until one fails.
func (a *attempt) runAll(ctx context.Context, args [][]string) error {
	for i := range args {
		run := a.runStep
		switch {
		case a.steps[i].Flow != nil:
			run = a.runFlow
		case a.steps[i].Commits:
			run = a.runCommitting
		}
		if err := run(ctx, i, args[i]); err != nil {
			return a.withStep(err, i)
		}
		if name := a.steps[i].Label; name != "" {
			if err := a.d.Step(name, func() error { return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// withStep adds to a failure the step in which it happened and its context, outermost first. An
// only command has no name, which would make groups of the names of commands; its context has it.
func (a *attempt) withStep(err error, i int) error {
	if err == nil {
		return nil
	}
	var known nixie.Failure
	if evidence := nixie.OutcomeOf(err).Evidence; evidence != nil {
		known = *evidence
	}
	step, at := a.steps[i], fmt.Sprintf("step %d of %d", i+1, len(a.steps))
	if known.Step = step.Label; known.Step == "" {
		at = "command " + step.Program()
	}
	known.Context = append([]string{"item " + itemID(a.d), at}, known.Context...)
	if step.Logs && a.workplace == nil { // a workplace names its own
		if _, err := os.Stat(a.logFile()); err == nil {
			known.LogLocation = a.logFile()
		} else {
			_ = os.Remove(filepath.Dir(a.logFile())) // unless earlier attempts wrote logs
		}
	}
	return nixie.WithEvidence(err, known)
}

// logFile returns the path of the attempt's log, for agents.
func (a *attempt) logFile() string {
	if a.workplace != nil {
		return a.workplace.LogFile()
	}
	return filepath.Join(a.c.StateFolder, "logs", a.d.ID.String(), strconv.FormatInt(a.d.Lease.Number, 10)+".log")
}

// endLog removes the log of a successful attempt, and those of the attempts before if the item
// never died: those of a letter stay.
func (a *attempt) endLog() {
	folder := filepath.Dir(a.logFile())
	if a.d.Redrives == 0 {
		_ = os.RemoveAll(folder) // what stays is a small file that no letter names
		return
	}
	_ = os.Remove(a.logFile())
	_ = os.Remove(folder) // unless it has others
}

// fieldsOf returns the fields of an item that its environment should have.
func fieldsOf(item items.Stored) (fields []command.Field) {
	item.Scalars(func(name, value string) { fields = append(fields, command.Field{Name: name, Value: value}) })
	return fields
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// runStep runs the i-th step and makes an error of its exit and verdict.
func (a *attempt) runStep(ctx context.Context, i int, args []string) error {
	step := &a.steps[i]
	if step.crew != nil {
		return a.converse(ctx, i)
	}
	c := call{step: step, args: args, timeout: a.c.Timeout, first: i == 0}
	if a.workplace != nil {
		c.dir = a.workplace.Dir()
	}
	_, err := a.run(ctx, &c)
	return err
}

// call is one run of a step.
type call struct {
	step      *step
	args      []string
	own       []command.Field // variables of a step of a file
	values    []command.Field // of its script
	dir       string          // empty is that of this process
	timeout   time.Duration
	first     bool // nothing of the attempt has run before
	tailLimit int
}

// run runs a step and makes an error of its exit and verdict.
func (a *attempt) run(ctx context.Context, c *call) (command.Result, error) {
	verdictPath := a.verdicts + "/" + a.d.ID.String() + "-" + strconv.FormatInt(a.d.Lease.Number, 10)
	variables := a.variables(a.d)
	variables.Verdict = verdictPath
	variables.Fields = fieldsOf(a.item)
	a.tellLeftOut(a.d, variables.Fields)
	spec := command.Spec{Args: c.args, Path: c.step.file, Dir: c.dir, Stdin: a.d.Body, Timeout: c.timeout, Grace: commandGrace,
		Guard: a.guard, TailLimit: c.tailLimit}
	if a.workplace != nil {
		variables.ItemFile, variables.ResultFile = a.workplace.ItemFile(), a.workplace.ResultFile()
	}
	if c.step.Logs {
		variables.LogFile = a.logFile()
		if err := os.MkdirAll(filepath.Dir(variables.LogFile), 0o700); err != nil {
			return command.Result{}, nixie.WithReason(nixie.Transient(fmt.Errorf("folder of the log: %w", err)), nixie.ReasonResource)
		}
	}
	if len(a.d.Headers) > 0 {
		variables.HeadersFile = verdictPath + "-headers"
		if err := writeJSON(variables.HeadersFile, a.d.Headers); err != nil {
			return command.Result{}, nixie.WithReason(nixie.Transient(fmt.Errorf("file of the headers: %w", err)), nixie.ReasonResource)
		}
		defer func() { _ = os.Remove(variables.HeadersFile) }() // a leftover is small and unused
	}
	if a.workplace == nil && a.wantsAnswer(a.d) {
		variables.ResultFile = a.resultPath()
	}
	env := a.env
	if len(c.own) > 0 {
		env = command.NewEnvironment(env.With(c.own...))
	}
	spec.Env = env.For(variables)
	for _, v := range c.values {
		spec.Env = append(spec.Env, v.Name+"="+v.Value)
	}
	if a.printed != nil {
		spec.Stdout, spec.Stderr = &a.printed.Stdout, &a.printed.Stderr
	}
	result, err := command.Run(ctx, spec)
	if err != nil {
		return result, a.ownFault(c.first, spec.Dir, err)
	}
	if c.first {
		a.count.attempts.Add(1)
	}
	verdict, broken := command.ReadVerdict(verdictPath, a.c.Clock())
	if broken != nil {
		return result, result.JudgeBroken(broken, a.c.PermanentExit)
	}
	if verdict != nil {
		for _, step := range verdict.Steps {
			if err := a.d.Step(step, func() error { return nil }); err != nil {
				return result, result.JudgeBroken(err, a.c.PermanentExit)
			}
		}
	}
	return result, result.Judge(verdict, a.c.PermanentExit)
}

// ownFault makes an error that would stop the run a failure of its item, where the attempt itself
// removed its folder, or what an earlier step could still start.
func (a *attempt) ownFault(first bool, dir string, err error) error {
	var start *command.StartError
	if a.workplace == nil || !errors.As(err, &start) {
		return err
	}
	if _, gone := os.Stat(dir); first && gone == nil {
		return err
	}
	return nixie.WithReason(errors.New(start.Error()), nixie.ReasonWorktree)
}
