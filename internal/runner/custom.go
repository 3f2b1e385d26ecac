package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/policy"
)

// custom is the command that decides about items that the policy gives up on.
type custom struct {
	args []string // empty: there is no such command
	path string
}

// readCustom reads the words after "custom:".
func readCustom(text string) (custom, error) {
	args, path, err := command.Words(text)
	if err != nil {
		return custom{}, nixie.Errorf(nixie.CodeInvalid, "on-item-failure: %w", err)
	}
	return custom{args, path}, nil
}

// Exit codes of a custom command.
const (
	customDiscards = 0
	customRetries  = 10
	customBuries   = 11
	customStops    = 12
)

// customInput is the JSON that a custom command reads on standard input.
type customInput struct {
	ItemID    string `json:"item_id"`
	MessageID string `json:"message_id"`
	Job       string `json:"job"`
	Attempts  int    `json:"attempts"`
	nixie.Failure
	DurationMS int64 `json:"duration_ms"`
}

// askCustom lets the custom command decide about an item that the policy would give up on, and
// keeps the answer for the decider.
func (r *Runner) askCustom(ctx context.Context, d *nixie.Delivery, failed error, started time.Time) {
	now := r.c.Clock()
	p := r.policyOf(d.Queue)
	st := p.Decide(d, p.Diagnose(d, failed, policy.Attempt{StartedAt: started, FailedAt: now, Worker: r.c.Owner, Mask: r.c.Mask}), now)
	if st.Burial == nil {
		return
	}
	f := st.Failure
	f.Attachments = nil
	note, err := json.Marshal(customInput{itemID(d), d.ID.String(), d.Queue, d.Attempts, *f, f.Took.Milliseconds()})
	if err != nil {
		r.decider.keep(d.ID, answer{verb: nixie.Bury, second: err})
		return
	}
	result, err := command.Run(ctx, command.Spec{
		Args: r.custom.args, Path: r.custom.path, Env: r.env.For(r.variables(d)),
		Stdin: note, Timeout: r.c.Timeout, Grace: commandGrace, Guard: r.guard,
	})
	if ctx.Err() == nil { // otherwise the runner ended it: its exit is no answer
		r.decider.keep(d.ID, readAnswer(result, err))
	}
}

// readAnswer reads the answer of a custom command. A failed command buries the item, and its
// failure is recorded too.
func readAnswer(result command.Result, err error) answer {
	if err == nil && !result.TimedOut && !result.Canceled && result.Signal == 0 {
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
