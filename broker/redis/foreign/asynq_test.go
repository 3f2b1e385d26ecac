//go:build unix

package foreign

import (
	"context"
	"errors"
	"testing"
	"time"

	real "github.com/hibiken/asynq"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/redrive"
)

// A task that a server of asynq archived is adopted with what is known of it, once. It goes back
// as it was or with a new payload, and a worker of asynq runs it.
func TestRealAsynq(t *testing.T) {
	t.Parallel()
	c, _ := database(t)
	to := real.RedisClientOpt{Addr: c.Options().Addr, DB: c.Options().DB}
	client := real.NewClient(to)
	defer func() { _ = client.Close() }()
	inspector := real.NewInspector(to)
	defer func() { _ = inspector.Close() }()
	for _, id := range []string{"kept", "changed", "raced"} {
		task := real.NewTaskWithHeaders("mail", []byte(`{"n":7}`), map[string]string{"trace": "t1"})
		if _, err := client.Enqueue(task, real.TaskID(id), real.Queue("mails"), real.MaxRetry(0)); err != nil {
			t.Fatal(err)
		}
	}
	dead := func() int {
		list, err := inspector.ListArchivedTasks("mails")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := time.Now().Truncate(time.Second)
	work(t, to, func(context.Context, *real.Task) error { return errors.New("boom 7") }, func() {
		until(t, "the death", func() bool { return dead() == 3 })
	})
	cfg := Config{Format: "asynq"}
	o := newOffice(t)
	if n, again := o.adopt(c, cfg), o.adopt(c, cfg); n != 3 || again != 0 || dead() != 3 {
		t.Fatalf("%d adopted, then %d, %d are dead", n, again, dead())
	}
	letters := map[string]nixie.Letter{}
	for _, l := range o.letters() {
		letters[l.Message.Origin.MessageID] = l
	}
	l := letters["kept"]
	m, f := &l.Message, l.History[0]
	if m.Queue != "mails" || string(m.Body) != `{"n":7}` || m.Attempts != 1 || m.Header(headerType) != "mail" ||
		m.Header("job-header") != "trace: t1" || f.Text != "boom 7" || f.Type != "" || f.Stack != "" || !m.Origin.Timestamp.IsZero() ||
		l.DiedAt.Before(before) {
		t.Errorf("%+v", l)
	}
	if err := inspector.RunTask("mails", "raced"); err != nil { // by its own tool
		t.Fatal(err)
	}
	if err := o.redrive(c, cfg, nil, letters["raced"])[0]; nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("a task that is not archived goes: %v", err)
	}
	o.mustRedrive(c, cfg, letters["kept"])
	change := func(d *redrive.Destination) {
		d.Transform = func(_ context.Context, r *broker.Returning) error {
			r.Value = []byte(`{"n":8}`)
			return nil
		}
	}
	if err := o.redrive(c, cfg, change, letters["changed"])[0]; err != nil {
		t.Error(err)
	}
	if dead() != 0 {
		t.Errorf("%d are dead", dead())
	}
	ran := make(chan string, 3)
	work(t, to, func(ctx context.Context, task *real.Task) error {
		id, _ := real.GetTaskID(ctx)
		ran <- id + " " + string(task.Payload()) + " " + task.Headers()["trace"]
		return nil
	}, func() {
		got := map[string]bool{<-ran: true, <-ran: true, <-ran: true}
		for _, want := range []string{`kept {"n":7} t1`, `changed {"n":8} t1`, `raced {"n":7} t1`} {
			if !got[want] {
				t.Errorf("%q did not run: %v", want, got)
			}
		}
	})
	if left := readAll(t, c, cfg); len(left) != 0 {
		t.Errorf("%d are dead", len(left))
	}
}

// work runs a server of asynq until done returns.
func work(t *testing.T, to real.RedisClientOpt, handle real.HandlerFunc, done func()) {
	t.Helper()
	s := real.NewServer(to, real.Config{
		Concurrency: 1, Queues: map[string]int{"mails": 1}, LogLevel: real.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
	})
	if err := s.Start(handle); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	done()
}

// A message of asynq keeps the fields that we do not know.
func TestAsynqKeepsUnknownFields(t *testing.T) {
	msg := []byte("\x0a\x01t\x12\x02{}\xa2\x06\x03new\x28\x05") // type, payload, field 100, retry
	got := asynqWith(msg, []byte("[1]"))
	if want := "\x0a\x01t\xa2\x06\x03new\x28\x05\x12\x03[1]"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := asynqWith(msg, []byte("{}")); string(got) != string(msg) {
		t.Errorf("the same payload gives %q", got)
	}
}

func (p *scene) asynq() real.RedisClientOpt {
	return real.RedisClientOpt{Addr: p.c.Options().Addr, DB: p.c.Options().DB}
}

// asynqActs are those of the scripts of other libraries.
func asynqActs(p *scene, args []string) {
	p.t.Helper()
	inspector := real.NewInspector(p.asynq())
	defer func() { _ = inspector.Close() }()
	var err error
	switch args[0] {
	case "enqueue":
		client := real.NewClient(p.asynq())
		defer func() { _ = client.Close() }()
		_, err = client.Enqueue(real.NewTask("mail", []byte(args[2])), real.TaskID(args[1]), real.Queue("mails"), real.MaxRetry(0))
	case "retry":
		err = inspector.RunTask("mails", args[1])
	case "remove":
		err = inspector.DeleteTask("mails", args[1])
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// asynqWorks runs tasks that fail until the key fixed is there.
func asynqWorks(p *scene, until func()) {
	work(p.t, p.asynq(), func(ctx context.Context, task *real.Task) error {
		if p.c.Exists(ctx, "fixed").Val() == 0 {
			return errors.New("boom " + string(task.Payload()))
		}
		return p.c.RPush(ctx, "done", task.Payload()).Err()
	}, until)
}
