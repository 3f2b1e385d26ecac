package nixietest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/nixietest"
)

type invoice struct{ Number int }

var (
	send    = nixie.NewType[invoice]("send", nixie.Queue("billing"))
	receipt = nixie.NewType[string]("receipt", nixie.Queue("mails"))
)

func TestRunReturnsWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	h := nixie.Routes(send.Handle(func(_ context.Context, job *nixie.Job[invoice]) error {
		switch {
		case job.Body.Number == 1:
			next, err := receipt.Message("for 1")
			return errors.Join(err, job.Then(next))
		case job.Body.Number == 2 && job.Attempts < 3:
			return errors.New("busy")
		case job.Body.Number == 3:
			return nixie.Permanent(errors.New("no such customer"))
		case job.Body.Number == 4:
			panic("index out of range")
		}
		return nil
	}, nixie.Attempts(3)))
	var jobs []nixie.Message
	for n := range 4 {
		jobs = append(jobs, nixietest.Message(t, send, invoice{n + 1}))
	}
	jobs = append(jobs, nixietest.Message(t, send, invoice{}, nixie.Delay(time.Hour), nixie.Queue("")))
	got := nixietest.Run(t, h, jobs...)
	for i, want := range []string{"succeeded 1 0", "succeeded 3 2", "dead 1 1", "dead 3 3", "succeeded 1 0"} {
		r := &got[i]
		if is := fmt.Sprint(r.State, " ", r.Attempts, " ", len(r.Failures)); is != want {
			t.Errorf("message %d: %s (%s), want %s", i+1, is, r.LastFailure, want)
		}
		if dead := r.State == nixie.Dead; dead != (r.Letter != nil) {
			t.Errorf("message %d: %s with letter %v", i+1, r.State, r.Letter)
		}
	}
	if body := nixietest.RequireEnqueued(t, got[0].Enqueued, receipt); body != "for 1" {
		t.Errorf("the receipt says %q", body)
	}
	if waited := got[4].EndedAt.Sub(got[4].EnqueuedAt); waited < time.Hour || got[4].Queue != nixietest.DefaultQueue {
		t.Errorf("the message of queue %s that waits for an hour ended after %s", got[4].Queue, waited)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("virtual hours took %s", took)
	}
}

// A job alone, without a worker, has no lease and no store, and its methods work.
func TestABareJob(t *testing.T) {
	t.Parallel()
	handle := func(_ context.Context, job *nixie.Job[invoice]) error {
		if job.Lost() != nil || job.Completed() || job.Done("charge") {
			return errors.New("it has a past")
		}
		next, err := receipt.Message("done")
		if err := errors.Join(err, job.Then(next)); err != nil {
			return err
		}
		return job.Step("charge", func() error { return nil })
	}
	if err := handle(t.Context(), &nixie.Job[invoice]{Body: invoice{7}}); err != nil {
		t.Error(err)
	}
	job, err := send.Job(invoice{7}, nixie.Key("k"))
	if err := errors.Join(err, handle(t.Context(), job)); err != nil {
		t.Error(err)
	}
	if job.Key != "k" || job.Attempts != 1 || !job.Done("charge") || len(job.Tracking.Then) != 1 {
		t.Errorf("a job of a type: %+v", job)
	}
}

func TestRecorderRefusesWhatAStoreRefuses(t *testing.T) {
	t.Parallel()
	var r nixietest.Recorder
	through := nixie.Through(&r, func(_ context.Context, m *nixie.Message) error {
		m.Headers = append(m.Headers, nixie.Header{Name: "tenant", Value: "north"})
		return nil
	})
	_, err := receipt.Enqueue(t.Context(), through, "a", nixie.Priority(9))
	if nixie.CodeOf(err) != nixie.CodeInvalid || len(r.Enqueued) != 0 {
		t.Errorf("a wrong priority: %v, kept %d", err, len(r.Enqueued))
	}
	if _, err := receipt.Enqueue(t.Context(), through, "a"); err != nil || r.Enqueued[0].Header("tenant") != "north" {
		t.Errorf("%v: %+v", err, r.Enqueued)
	}
}

// fails records that a helper failed its test.
type fails struct {
	testing.TB
	said string
}

func (f *fails) Helper() {}
func (f *fails) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

func TestHelpersFailTheTest(t *testing.T) {
	t.Parallel()
	never := nixie.Routes(send.Handle(func(context.Context, *nixie.Job[invoice]) error {
		return nixie.Snooze(errors.New("later"), time.Minute)
	}))
	for want, do := range map[string]func(testing.TB){
		`nixietest: 0 messages of type receipt were enqueued, want 1; all: ["send"]`: func(t testing.TB) {
			nixietest.RequireEnqueued(t, []nixie.Message{{Type: "send"}}, receipt)
		},
		"nixietest: body of type any cannot be encoded: json: unsupported type: chan int": func(t testing.TB) {
			nixietest.Message[any](t, nixie.NewType[any]("any"), make(chan int))
		},
		"nixietest: backoff of the route for type send: ": func(t testing.TB) {
			nixietest.Run(t, nixie.Routes(send.Handle(nil, nixie.Backoff("often"))), nixietest.Message(t, send, invoice{}))
		},
		"nixietest: after 1000 waits a message has not ended": func(t testing.TB) {
			nixietest.Run(t, never, nixietest.Message(t, send, invoice{}))
		},
	} {
		f := &fails{TB: t}
		func() {
			defer func() { _ = recover() }()
			do(f)
		}()
		if !strings.HasPrefix(f.said, want) {
			t.Errorf("it said %q, want %q", f.said, want)
		}
	}
}
