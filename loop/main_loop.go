package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// MainConfig configures a [MainLoop].
type MainConfig[Req, Res any] struct {
	Requests *Mailbox[Request[Req], Result[Res]]                      // required
	Execute  func(ctx context.Context, req Request[Req]) (Res, error) // required
	DLQ      DLQPolicy                                                // what becomes of failures
	Worker   worker.Config                                            // without Source, Handler, Policy and Decider
}

// MainLoop executes requests and answers them. What it promises:
//
//   - The result goes to the mailbox that the request names, in the transaction that completes the
//     request: there is an answer exactly if the work is done. Over a broker it is sent before the
//     request is acknowledged, perhaps more than once; a mailbox in Redis takes it once.
//   - While a request is retried its sender hears nothing. When it dies, its sender gets an error
//     that begins with "Dead-lettered after", in the transaction of the letter. A request that is
//     rejected gets one that begins with "Rejected after".
//   - An answer goes to a mailbox of the same store or broker. If nothing receives there it waits.
//     If the mailbox is closed, or missing on a broker, the answer dies and not the request, whose
//     work is done: a [DeadLetter] with the answer as body goes to the [DefaultDLQ] of that
//     mailbox.
type MainLoop[Req, Res any] struct {
	engine
	c     MainConfig[Req, Res]
	clock func() time.Time
	log   *slog.Logger
	dlq   *DLQ
	name  string // of the worker
	ids   store.IDs
}

// NewMainLoop checks a config and makes a loop of it. Errors are [ErrInvalidParameter].
func NewMainLoop[Req, Res any](c MainConfig[Req, Res]) (*MainLoop[Req, Res], error) {
	w := c.Worker
	switch {
	case c.Requests == nil || c.Execute == nil:
		return nil, invalid("main loop has no mailbox or no function: set Requests and Execute")
	case w.Source != nil || w.Handler != nil || w.Policy != nil || w.Decider != nil:
		return nil, invalid("worker of the main loop has a source, handler, policy or decider: set Requests, Execute and DLQ instead")
	}
	dlq, err := NewDLQ(c.DLQ)
	if err != nil {
		return nil, err
	}
	notices, err := dlq.mailboxes(c.Requests.name, c.Requests.letters)
	if err != nil {
		return nil, err
	}
	l := &MainLoop[Req, Res]{c: c, dlq: dlq, clock: w.Clock, log: w.Logger, name: w.Name}
	if l.clock == nil {
		l.clock = time.Now
	}
	if l.log == nil {
		l.log = slog.Default()
	}
	w.Source, w.Policy, w.Decider = c.Requests.back.Source, dlq.Policy(), l
	w.Handler, err = worker.RetryInClaim(nixie.HandlerFunc(l.handle), dlq.Policy(), policy.InClaim{Extensions: maxExtensions}, l.clock)
	if err != nil {
		return nil, explain(err)
	}
	if l.engine, err = newEngine(c.Requests.name, w, DefaultVisibility); err != nil {
		return nil, err
	}
	if check := c.Requests.check; check != nil {
		l.ready = func(ctx context.Context) error { return check(ctx, notices) }
	}
	return l, nil
}

// maxExtensions limits how often an attempt may ask for more visibility; see the profile wink.
const maxExtensions = 10

// Execute executes a request at once, without a mailbox and without another attempt.
func (l *MainLoop[Req, Res]) Execute(ctx context.Context, req Request[Req]) Result[Res] {
	run := RunContext{RunID: l.ids.New(l.clock()), RequestID: req.RequestID, Attempt: 1, WorkerID: l.name}
	run.RequestID = cmp.Or(run.RequestID, run.RunID.String())
	out, err := try(func() (Res, error) { return l.attempt(ctx, run, req) })
	r := l.result(run)
	if r.Output = out; err != nil {
		r.Error = err.Error()
	}
	return r
}

func (l *MainLoop[Req, Res]) result(run RunContext) Result[Res] {
	return Result[Res]{RequestID: run.RequestID, RunContext: run, CompletedAt: l.clock().UTC()}
}

// handle executes the request of a delivery. Its answer follows when the delivery completes.
func (l *MainLoop[Req, Res]) handle(ctx context.Context, d *nixie.Delivery) error {
	var req Request[Req]
	if err := decode(l.c.Requests.codec, d, &req); err != nil {
		return err
	}
	run := l.runOf(d, req.RequestID)
	out, err := l.attempt(ctx, run, req)
	if err != nil {
		return err
	}
	r := l.result(run)
	r.Output = out
	answer, err := l.answer(d, r)
	if err == nil {
		err = d.Then(answer...)
	}
	return nixie.Permanent(err) // of a result that cannot be sent: another attempt has none that can
}

func (l *MainLoop[Req, Res]) runOf(d *nixie.Delivery, requestID string) RunContext {
	return RunContext{l.ids.New(l.clock()), cmp.Or(requestID, requestIDOf(d)), attemptsOf(d), l.name, traceOf(d)}
}

// errBudget ends an attempt that uses more than its request allows.
var errBudget = errors.New("budget of the request is used up")

// attempt executes a request within its deadline and budget.
func (l *MainLoop[Req, Res]) attempt(ctx context.Context, run RunContext, req Request[Req]) (out Res, err error) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, runKey{}, run))
	defer cancel(nil)
	if !req.Deadline.IsZero() {
		if !l.clock().Before(req.Deadline) {
			return out, l.late(req, errors.New("it was not begun"))
		}
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, req.Deadline)
		defer end()
	}
	session := &Session{}
	if req.Budget.Tokens > 0 {
		session.limit, session.end = req.Budget.Tokens, func() { cancel(errBudget) }
	}
	out, err = l.c.Execute(context.WithValue(ctx, sessionKey{}, session), req)
	switch {
	case session.over():
		err = nixie.WithReason(nixie.Permanent(fmt.Errorf("%w: %d of %d tokens", errBudget, session.Tokens(), req.Budget.Tokens)),
			nixie.ReasonResource)
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !req.Deadline.IsZero() && !l.clock().Before(req.Deadline):
		err = l.late(req, err)
	}
	return out, err
}

// late is the error of a request whose deadline has passed: no attempt will succeed.
func (l *MainLoop[Req, Res]) late(req Request[Req], err error) error {
	err = fmt.Errorf("deadline %s of the request has passed: %w", req.Deadline.UTC().Format(time.RFC3339), err)
	return nixie.WithReason(nixie.Permanent(err), nixie.ReasonTimeout)
}

// Decide implements [policy.Decider]: what ends without success is answered with an error.
func (l *MainLoop[Req, Res]) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	if queue := refuser(d, f); queue != "" {
		return l.unanswered(d, f, queue, now)
	}
	st := l.dlq.Decide(d, f, now)
	how := "Dead-lettered"
	switch {
	case f == nil:
		return st
	case st.Verb == nixie.Discard:
		how = "Rejected"
	case st.Burial == nil:
		return st
	}
	r := l.result(l.runOf(d, requestIDIn(l.c.Requests.codec, d)))
	r.Error = fmt.Sprintf("%s after %d attempts: %s", how, r.RunContext.Attempt, st.Failure.Text)
	answer, err := l.answer(d, r)
	if err != nil {
		l.log.Error("a request died, and its sender cannot be told", "id", IDOf(d).String(), "error", err.Error())
		return st
	}
	st.Then = append(answer, st.Then...) // at the same index as a result, and so with the same dedupe key
	return st
}

// refuser returns the queue that refused an answer, or the dead letter of one: it is closed, or
// there is no such channel of the broker. It is empty if the attempt has another failure, or none.
func refuser(d *nixie.Delivery, f *nixie.Failure) string {
	var told *nixie.Error
	if f == nil || len(d.Tracking.Then) == 0 || !errors.As(f.Err, &told) {
		return ""
	}
	switch told.Code {
	case nixie.CodeConflict, nixie.CodeNotFound:
		return told.Queue
	}
	return ""
}

// unanswered completes a request whose answer was refused by a queue. The dead letter of the answer
// follows, unless it was that one which was refused.
func (l *MainLoop[Req, Res]) unanswered(d *nixie.Delivery, f *nixie.Failure, queue string, now time.Time) nixie.Settlement {
	st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	answer := &nixie.Delivery{Message: d.Tracking.Then[len(d.Tracking.Then)-1]}
	answer.ID, answer.EnqueuedAt = d.ID, now
	dead := broker.ChannelName(DefaultDLQ, queue)
	if queue != answer.Queue || dead == l.c.Requests.letters {
		l.log.Error("an answer is lost: neither its mailbox takes it nor that of dead letters", "id", IDOf(d).String(), "error", f.Text)
		return st
	}
	st.Then = []nixie.Message{notice(answer, f, dead, false, now)}
	return st
}

// answer makes the message of a result, or none if the request names no mailbox for it.
func (l *MainLoop[Req, Res]) answer(d *nixie.Delivery, r Result[Res]) ([]nixie.Message, error) {
	name := d.Header(HeaderReplyTo)
	if name == "" {
		return nil, nil
	}
	err := checkName("mailbox for replies", name)
	if err == nil && name == l.c.Requests.letters {
		err = invalid("mailbox %s for replies has the letters of %s as they are: name another one", name, l.c.Requests.name)
	}
	if err != nil {
		l.log.Error("a request cannot be answered", "id", IDOf(d).String(), "error", err.Error())
		return nil, nil
	}
	out := Outlet[Result[Res]]{name: name, codec: l.c.Requests.codec}
	m, err := out.Message(r, nixie.WithHeader(nixie.HeaderRequestID, r.RequestID))
	return []nixie.Message{m}, err
}
