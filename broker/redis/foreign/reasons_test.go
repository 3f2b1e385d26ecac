package foreign

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// The errors that each system keeps become reasons, also of the attempts before the last.
func TestReasons(t *testing.T) {
	asynqError := func(text string) job {
		return asynqJob(protowire.AppendString(protowire.AppendTag(nil, asynqError, protowire.BytesType), text), "")
	}
	bull := func(text, stack string) job {
		return bullmqJob(stored{fields: map[string]string{"failedReason": text, "stacktrace": stack}}, 1_700_000_002_500)
	}
	killed := "Work-horse terminated unexpectedly; waitpid returned 9 (signal 9); "
	slow := "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\nrq.timeouts.JobTimeoutException: Task exceeded " +
		"maximum timeout value (180 seconds)\n"
	results := []redis.XMessage{
		{ID: "1700000002500-0", Values: map[string]any{"type": rqFailed, "exc_string": packed(killed)}},
		{ID: "1700000001500-0", Values: map[string]any{"type": rqFailed, "exc_string": packed(slow)}},
	}
	celery := func(kind, message string) job {
		stored := `{"status":"FAILURE","name":"mail","result":{"exc_type":"` + kind + `","exc_message":["` + message + `"]}}`
		return celeryJob(object([]byte(stored)), []byte(stored), "a")
	}
	sidekiq := func(class, message string) job {
		return sidekiqJob([]byte(`{"jid":"a","error_class":"`+class+`","error_message":"`+message+`"}`), 1_700_000_002, false)
	}
	for name, c := range map[string]struct {
		job    job
		reason nixie.Reason
	}{
		"rq killed":          {rqJob(stored{fields: map[string]string{"data": "x"}}, results), nixie.ReasonLeaseExpired},
		"celery killed":      {celery("WorkerLostError", "Worker exited prematurely: signal 9 (SIGKILL) 0."), nixie.ReasonLeaseExpired},
		"celery too long":    {celery("TimeLimitExceeded", "2"), nixie.ReasonTimeout},
		"celery no task":     {celery("NotRegistered", "'mail'"), nixie.ReasonUnknownType},
		"celery of a person": {celery("ValueError", "boom"), nixie.ReasonHandler},
		"asynq killed":       {asynqError("asynq: task lease expired"), nixie.ReasonLeaseExpired},
		"asynq no handler":   {asynqError(`handler not found for task "mail"`), nixie.ReasonUnknownType},
		"asynq panic":        {asynqError("panic error cause by: boom"), nixie.ReasonPanic},
		"asynq slow":         {asynqError("context deadline exceeded"), nixie.ReasonTimeout},
		"asynq of a person":  {asynqError("boom"), nixie.ReasonUnknown},
		"bullmq killed":      {bull("job stalled more than allowable limit", ""), nixie.ReasonLeaseExpired},
		"bullmq refused": {bull("connect ECONNREFUSED 127.0.0.1:9", `["Error: connect ECONNREFUSED 127.0.0.1:9\n    at a"]`),
			nixie.ReasonTransportUnavailable},
		"sidekiq refused":  {sidekiq("Errno::ECONNREFUSED", "x"), nixie.ReasonTransportUnavailable},
		"sidekiq no class": {sidekiq("NameError", "uninitialized constant Mail"), nixie.ReasonUnknownType},
	} {
		j := c.job
		j.queue, j.id = "mails", "a"
		if j.death.FailedAt.IsZero() {
			j.death.FailedAt = time.UnixMilli(1_700_000_002_500)
		}
		if j.unpack != nil {
			j.unpack(&j, &inflater{left: maxPage})
		}
		r := j.record("system", deadSet{key: "dead"}, broker.Site{})
		l := broker.Adopted("redis", &r, "")
		if l.Reason != c.reason || l.Message.LastReason != c.reason {
			t.Errorf("%s: %s, want %s", name, l.Reason, c.reason)
		}
		if name == "rq killed" && (len(l.History) != 2 || l.History[0].Reason != nixie.ReasonTimeout) {
			t.Errorf("%s: history %+v", name, l.History)
		}
	}
}
