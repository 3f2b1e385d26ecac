package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// Records that consumers in processes of their own understand. What is behind the
// first word does not matter.
const (
	fine      = "ok"
	malformed = "malformed" // never succeeds
	flaky     = "flaky"     // fails the first time
	poison    = "poison"    // kills whoever has it
	held      = "held"      // is not finished before the test says so
)

// What they say: of records with the partition and offset that these came from.
const (
	handled = "handled"
	holding = "holding"
)

// maxCrashes is how many consumers a record may kill.
const maxCrashes = 5

// stagesOf is one stage for the retries of consumers in processes.
func stagesOf() []broker.Stage {
	return []broker.Stage{{Channel: "{source}.retry.50ms", Delay: 50 * time.Millisecond}}
}

var errLater = nixie.Transient(errors.New("later"))

// consumeAsChild consumes for a group, which has the name of the topic, until it is
// killed: args are the broker, the topic, the session timeout, and whether retries
// have a stage.
func consumeAsChild(args []string) error {
	session, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	c := Config{
		Seeds: args[:1], Group: args[1], Topics: args[1:2], CommitEvery: 5 * time.Millisecond,
		Client: []kgo.Opt{kgo.SessionTimeout(session), kgo.HeartbeatInterval(session / 10)},
	}
	if args[3] == "true" {
		c.Stages = stagesOf()
	}
	d, err := Open(c)
	if err != nil {
		return err
	}
	s, err := broker.New(broker.Config{Driver: d, Letters: broker.DefaultLetters})
	if err != nil {
		return err
	}
	p, err := policy.New(policy.Config{MaxAttempts: 9, MaxCrashes: maxCrashes, Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond}})
	if err != nil {
		return err
	}
	voice := &child.Voice{}
	w, err := worker.New(worker.Config{Source: s, Policy: p, Concurrency: 4, Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
		return handleAsChild(voice, d)
	})})
	if err != nil {
		return err
	}
	return w.Run(context.Background())
}

func handleAsChild(voice *child.Voice, d *nixie.Delivery) error {
	word, _, _ := strings.Cut(string(d.Body), " ")
	switch {
	case word == malformed:
		return errBad
	case word == flaky && d.Attempts == 1:
		return errLater
	case word == poison:
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
			return errBad
		}
		select {} // it is dead, or about to be
	case word == held:
		voice.Say(holding, d.Origin.Partition, d.Origin.Offset)
		if err := voice.Wait(); err != nil {
			return err
		}
	}
	voice.Say(handled, d.Origin.Partition, d.Origin.Offset)
	return nil
}

// consumer is such a process, as its test sees it.
type consumer struct {
	*child.Process
	ledger  *ledger
	holding chan struct{} // closed when it has what it is to hold
	ended   chan struct{} // closed when it has
}

// consume starts a consumer in a process of its own, whose work a ledger notes.
func (b *fixture) consume(t testing.TB, l *ledger, session time.Duration) *consumer {
	t.Helper()
	c := &consumer{
		Process: child.Start(t, b.seeds[0], b.source, session.String(), fmt.Sprint(len(b.stages) > 0)), ledger: l,
		holding: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		defer close(c.ended)
		for words := range c.Lines {
			c.note(words)
		}
	}()
	return c
}

func (c *consumer) note(words []string) {
	switch words[0] {
	case handled:
		var at topicPartition
		var offset int64
		if _, err := fmt.Sscan(words[1], &at.partition); err != nil {
			panic(err)
		}
		if _, err := fmt.Sscan(words[2], &offset); err != nil {
			panic(err)
		}
		at.topic = c.ledger.fixture.source
		c.ledger.mark(at, offset)
	case holding:
		close(c.holding)
	}
}

// kill ends it, and notes what it still said.
func (c *consumer) kill() {
	for _, words := range c.Kill() {
		c.note(words)
	}
	<-c.ended
}

// over reports whether it has ended by itself.
func (c *consumer) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
