package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/redrive"
)

// Points at which a redriving process stops until it is killed. It prints each point that it
// passes.
const (
	stands           = "stands"
	lettersRead      = "read"
	recordsSent      = "sent"
	recordsConfirmed = "confirmed"
	lettersDone      = "done"
)

// redriving as the first argument makes a child redrive; any other makes it consume.
const redriving = "redrive"

func asChild(args []string) error {
	if args[0] == redriving {
		return redriveAsChild(args[1:])
	}
	return consumeAsChild(args)
}

// redriverBatch limits how many records such a process repeats.
const redriverBatch = 40

// redriveAsChild redrives a topic. Args are the broker, the topic, the name of the reader, the
// point where it stops, and how often it passes that before.
func redriveAsChild(args []string) error {
	v := &reporter{at: args[3]}
	if _, err := fmt.Sscan(args[4], &v.left); err != nil {
		return err
	}
	from, err := Read(context.Background(), Address{Seeds: args[:1], Topic: args[1]}, args[2])
	if err != nil {
		return err
	}
	to, err := Connect(Address{Seeds: args[:1]})
	if err != nil {
		return err
	}
	_, err = redrive.Mover{From: &reportingReader{from, v}, Destination: redrive.Destination{To: &reportingPublisher{to, v}},
		Batch: redriverBatch}.Run(context.Background())
	return err
}

// reporter prints what a redriver does.
type reporter struct {
	child.Voice
	at   string
	left int // how often it still passes
}

func (v *reporter) pass(point string, list []*broker.Record) {
	words := []any{point}
	for _, r := range list {
		words = append(words, string(r.Value))
	}
	v.Say(words...)
	if point != v.at {
		return
	}
	if v.left--; v.left < 0 {
		v.Say(stands)
		select {} // until it is killed
	}
}

type reportingReader struct {
	broker.Reader
	*reporter
}

func (r *reportingReader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	got, err := r.Reader.Next(ctx, most)
	r.pass(lettersRead, nil)
	return got, err
}

func (r *reportingReader) Done(ctx context.Context, calls ...[]*broker.Record) error {
	r.pass(recordsConfirmed, nil)
	err := r.Reader.Done(ctx, calls...)
	if err == nil {
		var all []*broker.Record
		for _, list := range calls {
			all = append(all, list...)
		}
		r.pass(lettersDone, all)
	}
	return err
}

type reportingPublisher struct {
	broker.Publisher
	*reporter
}

func (p *reportingPublisher) Publish(ctx context.Context, list []broker.Publication) func() []error {
	answers := p.Publisher.Publish(ctx, list)
	p.pass(recordsSent, nil)
	return answers
}

// A redriving process is killed with -9 at each point, and at random moments. No record is lost,
// none that is done is sent again, and repeats have the same ID and are of one batch.
func TestRedriverKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "kafka-redriver-kills", func(t *testing.T, seed uint64) int { return redriverKilled(t, fake(t), seed) })
}

// The same on a real broker.
func TestRedriverKilledOnARealBroker(t *testing.T) {
	t.Parallel()
	redriverKilled(t, actual(t), 1)
}

func redriverKilled(t *testing.T, b *fixture, seed uint64) (kills int) {
	const records = 2_000
	rng := rand.New(rand.NewPCG(seed, 5))
	b.dead(t, records)
	name := b.source + "-killed"
	for _, point := range []string{lettersRead, recordsSent, recordsConfirmed, lettersDone, "", "", ""} {
		p := child.Start(t, redriving, b.seeds[0], b.letters, name, point, fmt.Sprint(rng.IntN(4)))
		done := map[string]bool{}
		note := func(words []string) {
			for _, value := range words[min(len(words), 1):] { // no word: the process has ended
				done[value] = true
			}
		}
		if point == "" { // at a random moment
			for range 1 + rng.IntN(20) {
				note(<-p.Lines)
			}
			sleep(t.Context(), time.Duration(rng.IntN(3_000))*time.Microsecond)
		} else {
			for words := p.Line(); words[0] != stands; words = p.Line() {
				note(words)
			}
		}
		for _, words := range p.Kill() {
			note(words)
		}
		kills++
		before := times(b.Records(t, b.source))
		for value := range done {
			if before[value] == 0 {
				t.Errorf("%s was done with, and is not there", value)
			}
		}
		b.notAgain(t, name, done)
	}
	if _, err := b.move(t, name, nil); err != nil {
		t.Fatal(err)
	}
	again := b.sameIDs(t, records, kills*redriverBatch)
	t.Logf("%d records, %d repeats after %d kills", records, again, kills)
	return kills
}

// times counts each value.
func times(records []broker.Record) map[string]int {
	n := map[string]int{}
	for _, r := range records {
		n[string(r.Value)]++
	}
	return n
}

// notAgain checks that the next reader of a name gets no record that is done.
func (b *fixture) notAgain(t testing.TB, name string, done map[string]bool) {
	t.Helper()
	r := b.reader(t, b.letters, name)
	defer r.Close()
	for {
		got, err := r.Next(limited(t), 1_000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if done[string(got[i].Value)] {
				t.Errorf("%s was done with, and comes again", got[i].Value)
			}
		}
		if len(got) == 0 {
			return
		}
	}
}
