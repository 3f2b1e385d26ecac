package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/policy"
)

// handle runs the command for one item.
func (r *Runner) handle(ctx context.Context, d *nixie.Delivery) error {
	r.count.attempts.Add(1)
	err := r.runCommand(ctx, d)
	if err == nil || ctx.Err() != nil {
		return err
	}
	var start *command.StartError
	if errors.As(err, &start) {
		// No item will do better: stop instead of burying all of them.
		r.halt(err)
		return nixie.Verdict(nixie.Release, err)
	}
	if len(r.custom) > 0 {
		r.ask(ctx, d, err)
	}
	return err
}

func (r *Runner) runCommand(ctx context.Context, d *nixie.Delivery) error {
	if d.Type == typeBad {
		return nixie.WithReason(nixie.Permanent(errors.New(d.Header(headerError))), nixie.ReasonSerialization)
	}
	item := items.OpenStored(d.Body, d.Type == typeLine)
	args, err := r.template.Expand(item.Field)
	if err != nil {
		return err
	}
	verdictPath := filepath.Join(r.c.VerdictFolder, fmt.Sprintf("%s-%d", d.ID, d.Lease.Number))
	variables := command.ItemVariables{ItemID: itemID(d), Attempt: d.Attempts, Lease: d.Lease.Number, Verdict: verdictPath}
	item.Scalars(func(name, value string) {
		variables.Fields = append(variables.Fields, command.Field{Name: name, Value: value})
	})
	result, err := command.Run(ctx, command.Spec{
		Args: args, Path: r.path, Env: r.env.For(variables), Stdin: d.Body,
		Timeout: r.c.Timeout, Guard: r.guard,
	})
	if err != nil {
		return err
	}
	verdict, broken := command.ReadVerdict(verdictPath)
	if broken != nil {
		return result.JudgeBroken(broken, r.c.PermanentExit)
	}
	if verdict != nil {
		for _, step := range verdict.Steps {
			if err := d.Step(step, func() error { return nil }); err != nil {
				return result.JudgeBroken(err, r.c.PermanentExit)
			}
		}
	}
	return result.Judge(verdict, r.c.PermanentExit)
}

// itemID is what the item is called: its key, or the message's ID when somebody
// enqueued it without one.
func itemID(d *nixie.Delivery) string {
	if d.Key != "" {
		return d.Key
	}
	return d.ID.String()
}

// Exit codes of a custom command.
const (
	customDiscards = 0
	customRetries  = 10
	customBuries   = 11
	customStops    = 12
)

// failureNote is what a custom command reads on standard input.
type failureNote struct {
	ItemID    string `json:"item_id"`
	MessageID string `json:"message_id"`
	Job       string `json:"job"`
	Attempts  int    `json:"attempts"`
	nixie.Failure
	DurationMS int64 `json:"duration_ms"`
}

// ask lets the custom command decide about an item that policy would give up
// on, and notes the answer for the judge.
func (r *Runner) ask(ctx context.Context, d *nixie.Delivery, failed error) {
	now := r.c.Clock()
	f := r.policy.Diagnose(d, failed, policy.Facts{StartedAt: now, FailedAt: now})
	st := r.policy.Decide(d, f, now)
	if st.Burial == nil {
		return
	}
	f.Attachments = nil
	note, err := json.Marshal(failureNote{itemID(d), d.ID.String(), r.c.Job, d.Attempts, *f, f.Took.Milliseconds()})
	if err != nil {
		r.judge.note(d.ID, answer{verb: nixie.Bury, second: err})
		return
	}
	result, err := command.Run(ctx, command.Spec{
		Args: r.custom, Env: r.env.For(command.ItemVariables{ItemID: itemID(d), Attempt: d.Attempts, Lease: d.Lease.Number}),
		Stdin: note, Timeout: r.c.Timeout, Guard: r.guard,
	})
	r.judge.note(d.ID, answered(result, err))
}

// answered reads the answer of a custom command. An answer that is none buries
// the item and is itself recorded.
func answered(result command.Result, err error) answer {
	if err == nil && !result.TimedOut && result.Signal == 0 {
		switch result.ExitCode {
		case customDiscards:
			return answer{verb: nixie.Discard}
		case customRetries:
			return answer{verb: nixie.Retry}
		case customBuries:
			return answer{verb: nixie.Bury}
		case customStops:
			return answer{verb: nixie.Halt}
		}
	}
	if err == nil {
		err = result.Err(nil)
	}
	return answer{verb: nixie.Bury, second: fmt.Errorf("custom command of on-item-failure: %w", err)}
}
