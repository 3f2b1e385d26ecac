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

// First words of records, which consumers in processes of their own understand.
const (
	fine      = "ok"
	malformed = "malformed" // never succeeds
	flaky     = "flaky"     // fails the first time
	poison    = "poison"    // kills its consumer
	held      = "held"      // does not finish before the test allows it
)

// What a consumer prints, with the partition and offset of the record.
const (
	handled = "handled"
	holding = "holding"
)

// maxCrashes limits how many consumers a record may kill.
const maxCrashes = 5

// stagesOf returns a stage for consumers in processes of their own.
func stagesOf() []broker.Stage {
	return []broker.Stage{{Channel: "{source}.retry.50ms", Delay: 50 * time.Millisecond}}
}

var errLater = nixie.Transient(errors.New("later"))

// consumeAsChild consumes for a group with the name of the topic, until it is killed. Args are the
// broker, the topic, the session timeout, and whether retries have a stage.
func consumeAsChild(args []string) error {
	session, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	c := Config{
		Seeds: args[:1], Group: args[1], Topics: args[1:2], CommitEvery: 5 * time.Millisecond,
		// A group waits that long for a member that was killed while it joined: by default a
		// minute.
		Client: []kgo.Opt{kgo.SessionTimeout(session), kgo.HeartbeatInterval(session / 10), kgo.RebalanceTimeout(3 * session)},
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
	p, err := policy.New(policy.Config{MaxAttempts: 9, MaxCrashes: maxCrashes,
		Backoff: policy.Backoff{Formula: policy.Fixed, Base: 10 * time.Millisecond}})
	if err != nil {
		return err
	}
	voice := &child.Voice{}
	w, err := worker.New(worker.Config{Source: s, Policy: p, Concurrency: 4,
		Handler: nixie.HandlerFunc(func(_ context.Context, d *nixie.Delivery) error {
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
		select {} // the process is dead, or about to be
	case word == held:
		voice.Say(holding, d.Origin.Partition, d.Origin.Offset)
		if err := voice.Wait(); err != nil {
			return err
		}
	}
	voice.Say(handled, d.Origin.Partition, d.Origin.Offset)
	return nil
}

// consumer is such a process, seen by its test.
type consumer struct {
	*child.Process
	ledger  *ledger
	holding chan struct{} // closed when the consumer has its held record
	ended   chan struct{} // closed when the process has ended
}

// consume starts a consumer in a process of its own. A ledger counts what it handles.
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
		c.ledger.markHandled(at, offset)
	case holding:
		close(c.holding)
	}
}

// kill kills the process, and reads what it printed before.
func (c *consumer) kill() {
	for _, words := range c.Kill() {
		c.note(words)
	}
	<-c.ended
}

// over reports whether the process has ended by itself.
func (c *consumer) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
