package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/redis"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// opened is a mailbox of the server, made with these others. It has the names that a user gets who
// names none.
func opened(t *testing.T, name string, others ...string) broker.Config {
	t.Helper()
	d := must(redis.Open(ctx, redis.Config{Address: redis.Address{Servers: []string{server.Addr}, Mailbox: name}}))(t)
	t.Cleanup(func() { _ = d.Close(ctx) })
	for _, other := range others {
		if err := d.Create(ctx, other, nil); err != nil {
			t.Fatal(err)
		}
	}
	return broker.Config{Driver: d, Queue: name}
}

// One death over Redis, with default names, is one letter as it is and one notice, each in a
// mailbox of its own.
func TestLettersAndNotices(t *testing.T) {
	server.Need(t)
	name := fmt.Sprintf("letters%d", os.Getpid())
	requests := must(loop.Over[request, result](opened(t, name, name+".dlq", name+"-dlq"), loop.Config{Logger: quiet}))(t)
	id := must(requests.Send(ctx, request{Request: "bad", RequestID: "r-1"}))(t)
	l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
		Requests: requests, Worker: worker.Config{Concurrency: 1, Logger: quiet, Until: worker.Until{Idle: true}},
		Execute: func(context.Context, request) (float64, error) { return 0, nixie.Permanent(errOther) },
	}))(t)
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}

	// What is no notice lies among them: a letter as it is, and JSON of another kind.
	notices := opened(t, name+"-dlq", name+"-dlq.dlq")
	for _, body := range []string{`{"request":"bad"}`, "text"} {
		if err := notices.Driver.Publish(ctx, []broker.Publication{{Channel: name + "-dlq", Value: []byte(body)}})()[0]; err != nil {
			t.Fatal(err)
		}
	}
	var got []loop.DeadLetter[request]
	k := must(loop.NewConsumer(loop.ConsumerConfig[request]{
		Mailbox: must(loop.Over[loop.DeadLetter[request], struct{}](notices, loop.Config{}))(t),
		Worker:  worker.Config{Logger: quiet, Until: worker.Until{Idle: true}},
		Handle:  func(_ context.Context, l loop.DeadLetter[request]) error { got = append(got, l); return nil },
	}))(t)
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].MessageID != id || got[0].Body.Request != "bad" || got[0].SourceMailbox != name ||
		got[0].RequestID != "r-1" || !strings.Contains(got[0].LastError, "no idea") {
		t.Errorf("notices: %+v", got)
	}
	letters, refused := records(t, name+".dlq"), records(t, name+"-dlq.dlq")
	if len(letters) != 1 || !strings.Contains(letters[0], `"request":"bad"`) {
		t.Errorf("letters: %q", letters)
	}
	if len(refused) != 2 {
		t.Errorf("what was no notice: %q", refused)
	}
	t.Logf("1 death: %d letter in .dlq, %d notice in -dlq, and %d that were none became letters", len(letters), len(got), len(refused))
}

// records returns the bodies that wait in a mailbox.
func records(t *testing.T, name string) (all []string) {
	t.Helper()
	c := opened(t, name)
	d := c.Driver.(*redis.Driver)
	got, err := d.Receive(ctx, broker.Want{Max: 100, Wait: time.Millisecond, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		all = append(all, string(got[i].Value))
	}
	return all
}

// A loop does not begin while a mailbox for its letters or notices is missing.
func TestLettersNeedTheirMailboxes(t *testing.T) {
	server.Need(t)
	for i, c := range []struct {
		made []string // besides the mailbox itself; % stands for its name
		want string
	}{
		{nil, "channel %.dlq for letters does not exist: create it (missing-target)"},
		{[]string{"%-dlq"}, "channel %.dlq for letters does not exist: create it (missing-target)"},
		{[]string{"%.dlq"}, "mailbox %-dlq for notices of deaths does not exist: create it"},
		{[]string{"%.dlq", "%-dlq"}, ""},
	} {
		name := fmt.Sprintf("missing%d-%d", os.Getpid(), i)
		var made []string
		for _, other := range c.made {
			made = append(made, strings.ReplaceAll(other, "%", name))
		}
		l := must(loop.NewMainLoop(loop.MainConfig[string, float64]{
			Requests: must(loop.Over[request, result](opened(t, name, made...), loop.Config{Logger: quiet}))(t),
			Execute:  func(context.Context, request) (float64, error) { return 0, nil },
			Worker:   worker.Config{Logger: quiet, Until: worker.Until{Idle: true}},
		}))(t)
		err := l.Run(ctx)
		if want := strings.ReplaceAll(c.want, "%", name); want == "" && err != nil || want != "" &&
			(!errors.Is(err, loop.ErrInvalidParameter) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("with %v: %v, want %s", made, err, want)
		}
	}
}

// Letters and notices never share a mailbox under any name, and no mailbox hears of its own deaths.
func TestLettersAndNoticesShareNothing(t *testing.T) {
	server.Need(t)
	name := fmt.Sprintf("shared%d", os.Getpid())
	for _, c := range []struct{ letters, notices, route, want string }{
		{"", "", "", ""},
		{"", "{source}.dlq", "", "takes the letters"},
		{"{source}-dlq", "", "", "takes the letters"},
		{"{source}-dlq", name + "-dlq", "", "takes the letters"},
		{name + "-dead", "{source}-dead", "", "takes the letters"},
		{"", "", "{source}.dlq", "takes the letters"},
		{"{source}-dlq", "-", "", ""},
		{"{source}-dlq", "{source}-told", "", ""},
		{"", "{source}", "", "would hear of its own deaths"},
		{"", "", name, "would hear of its own deaths"},
	} {
		b := opened(t, name)
		b.Letters = c.letters
		p := loop.DLQPolicy{Mailbox: c.notices}
		if c.route != "" {
			p.Routes = []loop.Route{{When: policy.MatchError(errOther), Mailbox: c.route}}
		}
		_, err := loop.NewMainLoop(loop.MainConfig[string, float64]{
			Requests: must(loop.Over[request, result](b, loop.Config{Logger: quiet}))(t), DLQ: p,
			Execute: func(context.Context, request) (float64, error) { return 0, nil },
		})
		refused := errors.Is(err, loop.ErrInvalidParameter) && strings.Contains(err.Error(), c.want)
		if c.want == "" && err != nil || c.want != "" && !refused {
			t.Errorf("letters %q, notices %q and %q: %v, want %q", c.letters, c.notices, c.route, err, c.want)
		}
	}
}
