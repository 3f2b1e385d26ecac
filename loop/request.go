package loop

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Request asks a [MainLoop] for something.
type Request[Req any] struct {
	Request    Req       `json:"request"`
	RequestID  string    `json:"request_id,omitempty"` // stable over retries; default that of the message, see [Message]
	CreatedAt  time.Time `json:"created_at,omitzero"`
	Deadline   time.Time `json:"deadline,omitzero"` // after it the request dies
	Budget     Budget    `json:"budget,omitzero"`
	Experiment string    `json:"experiment,omitempty"`
}

func (r Request[Req]) requestID() string { return r.RequestID }

// Budget limits what an attempt may use. Zero fields are no limit.
type Budget struct {
	Tokens int `json:"tokens,omitempty"` // see [Session].Spend
}

// Result answers a [Request]: with an output, or with an error when the request has died.
type Result[Res any] struct {
	RequestID   string     `json:"request_id"`
	Output      Res        `json:"output"`
	Error       string     `json:"error,omitempty"`
	RunContext  RunContext `json:"run_context"`
	CompletedAt time.Time  `json:"completed_at"`
}

// RunContext names an attempt.
type RunContext struct {
	RunID     nixie.ID `json:"run_id"`     // new for each attempt
	RequestID string   `json:"request_id"` // the same for all attempts
	Attempt   int      `json:"attempt"`    // 1 is the first
	WorkerID  string   `json:"worker_id,omitempty"`
	TraceID   string   `json:"trace_id,omitempty"`
}

type runKey struct{}

// RunOf returns the run context of a running attempt, and a zero one outside of one.
func RunOf(ctx context.Context) RunContext {
	run, _ := ctx.Value(runKey{}).(RunContext)
	return run
}
