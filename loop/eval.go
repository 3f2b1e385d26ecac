package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// EvalLoop runs samples through a function and scores what it returns. Execute and Evaluate are
// required. It is safe for concurrent use if they are.
//
// [NewEvalLoop] makes a loop that evaluates over a mailbox.
type EvalLoop[In, Out, Expected any] struct {
	Run      func(ctx context.Context, input In) (Out, error)
	Evaluate Evaluator[Out, Expected]
	Clock    func() time.Time // default time.Now
}

// EvalRequest asks for the evaluation of one sample.
type EvalRequest[In, Expected any] struct {
	Sample     Sample[In, Expected] `json:"sample"`
	Experiment string               `json:"experiment,omitempty"`
}

// EvalMailbox is a mailbox of requests for evaluations, which [In] or [Over] makes. Its answers are
// results whose output is an [EvalResult].
type EvalMailbox[In, Expected any] = Mailbox[Request[EvalRequest[In, Expected]], Result[EvalResult]]

// EvalConfig configures a loop that evaluates. See [MainConfig] for the fields of the same names.
type EvalConfig[In, Out, Expected any] struct {
	Requests *EvalMailbox[In, Expected]
	Eval     EvalLoop[In, Out, Expected]
	DLQ      DLQPolicy
	Worker   worker.Config
}

// NewEvalLoop makes a loop that evaluates the samples of a mailbox. Errors are
// [ErrInvalidParameter].
func NewEvalLoop[In, Out, Expected any](c EvalConfig[In, Out, Expected]) (*MainLoop[EvalRequest[In, Expected], EvalResult], error) {
	if c.Eval.Run == nil || c.Eval.Evaluate == nil {
		return nil, invalid("eval loop has no function or no evaluator: set Run and Evaluate of Eval")
	}
	return NewMainLoop(MainConfig[EvalRequest[In, Expected], EvalResult]{Requests: c.Requests, DLQ: c.DLQ, Worker: c.Worker,
		Execute: func(ctx context.Context, req Request[EvalRequest[In, Expected]]) (EvalResult, error) {
			return c.Eval.Execute(ctx, req.Request)
		}})
}

// EvalsIn makes a mailbox of requests for evaluations in a store; see [In].
func EvalsIn[Input, Expected any](st Store, name string, c Config) (*EvalMailbox[Input, Expected], error) {
	return In[Request[EvalRequest[Input, Expected]], Result[EvalResult]](st, name, c)
}

// Ask makes the request for this evaluation, to be sent to an [EvalMailbox].
func (r EvalRequest[In, Expected]) Ask() Request[EvalRequest[In, Expected]] {
	return Request[EvalRequest[In, Expected]]{Request: r}
}

// EvalResult is the score of one sample, or the error that prevented it.
type EvalResult struct {
	SampleID   string  `json:"sample_id"`
	Experiment string  `json:"experiment_name,omitempty"`
	Score      Score   `json:"score"`
	LatencyMS  float64 `json:"latency_ms"` // of Run
	Error      string  `json:"error,omitempty"`
}

// EvalReport sums up results. Rates and means are 0 where there is nothing to count.
type EvalReport struct {
	Total         int          `json:"total"`
	Successful    int          `json:"successful"` // have a score
	Errors        int          `json:"errors"`
	PassRate      float64      `json:"pass_rate"`       // of the successful ones
	MeanScore     float64      `json:"mean_score"`      // of the successful ones
	MeanLatencyMS float64      `json:"mean_latency_ms"` // of all
	Failed        []EvalResult `json:"failed_samples"`  // have a score and did not pass, or an error
}

// Report sums up results.
func Report(results []EvalResult) EvalReport {
	r := EvalReport{Total: len(results), Failed: []EvalResult{}}
	passed := 0
	for i := range results {
		one := &results[i]
		r.MeanLatencyMS += one.LatencyMS / float64(r.Total)
		if one.Error == "" {
			r.Successful++
			r.MeanScore += one.Score.Value
		}
		if one.Error == "" && one.Score.Passed {
			passed++
		} else {
			r.Failed = append(r.Failed, *one)
		}
	}
	r.Errors = r.Total - r.Successful
	if r.Successful > 0 {
		r.MeanScore /= float64(r.Successful)
		r.PassRate = float64(passed) / float64(r.Successful)
	}
	return r
}

// All evaluates a dataset, one sample after the other, without a mailbox. A sample that cannot be
// evaluated is an error in its result. All ends early, with an error, when ctx ends.
func (e *EvalLoop[In, Out, Expected]) All(ctx context.Context, experiment string, set Dataset[In, Expected]) (EvalReport, error) {
	var results []EvalResult
	for _, s := range set {
		r, err := e.Execute(ctx, EvalRequest[In, Expected]{s, experiment})
		if ctx.Err() != nil {
			return Report(results), nixie.Errorf(nixie.CodeUnavailable, "%d of %d samples are evaluated: %w",
				len(results), len(set), ctx.Err())
		}
		if err != nil {
			r.Error = err.Error()
		}
		results = append(results, r)
	}
	return Report(results), nil
}

// Execute evaluates one sample. Most errors, and panics, are part of the result: another attempt
// would meet them again. It returns an error that package policy calls transient, such as a lost
// connection: another attempt may succeed.
func (e *EvalLoop[In, Out, Expected]) Execute(ctx context.Context, req EvalRequest[In, Expected]) (EvalResult, error) {
	now := e.Clock
	if now == nil {
		now = time.Now
	}
	if SessionOf(ctx) == nil {
		ctx = context.WithValue(ctx, sessionKey{}, &Session{})
	}
	r := EvalResult{SampleID: req.Sample.ID, Experiment: req.Experiment}
	begun := now()
	output, err := try(func() (Out, error) { return e.Run(ctx, req.Sample.Input) })
	r.LatencyMS = float64(now().Sub(begun)) / float64(time.Millisecond)
	if err == nil {
		r.Score, err = try(func() (Score, error) { return e.Evaluate(ctx, output, req.Sample.Expected) })
	}
	if err == nil && !(r.Score.Value >= 0 && r.Score.Value <= 1) {
		err = nixie.Errorf(nixie.CodeInvalid, "score is %v: an evaluator has to return one from 0 to 1", r.Score.Value)
	}
	if err == nil {
		return r, nil
	}
	r.Score = Score{}
	if transient(err) {
		return r, err
	}
	r.Error = err.Error()
	return r, nil
}

// try makes an error of a panic.
func try[V any](do func() (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}

// transient reports whether another attempt may succeed.
func transient(err error) bool {
	p, bad := policy.New(policy.Config{Profile: profile})
	if bad != nil {
		return false
	}
	f := p.Diagnose(&nixie.Delivery{}, err, policy.Attempt{})
	return f.Class == nixie.ClassTransient
}

// profile names the errors and waits of mailboxes in package policy.
const profile = "wink"
