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

// Points of a redrive at which its process stands still until it is killed; it says
// which one it is at, each time it comes by.
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

// redriverBatch is how many records such a process repeats at most.
const redriverBatch = 40

// redriveAsChild redrives a topic: args are the broker, the topic, the name under which
// it is remembered what is done with, and a point with the time to stand still there.
func redriveAsChild(args []string) error {
	v := &witness{at: args[3]}
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
	_, err = redrive.Mover{From: &witnessedReader{from, v}, Route: redrive.Route{To: &witnessedPublisher{to, v}}, Batch: redriverBatch}.Run(context.Background())
	return err
}

// witness says what a redriver does.
type witness struct {
	child.Voice
	at   string
	left int // times that it still passes there
}

func (v *witness) pass(point string, list []*broker.Record) {
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

type witnessedReader struct {
	broker.Reader
	*witness
}

func (r *witnessedReader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	got, err := r.Reader.Next(ctx, most)
	r.pass(lettersRead, nil)
	return got, err
}

func (r *witnessedReader) Done(ctx context.Context, calls ...[]*broker.Record) error {
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

type witnessedPublisher struct {
	broker.Publisher
	*witness
}

func (p *witnessedPublisher) Publish(ctx context.Context, list []broker.Publication) func() []error {
	answers := p.Publisher.Publish(ctx, list)
	p.pass(recordsSent, nil)
	return answers
}

// A redriver in a process of its own is killed with -9 at every point, and at any moment:
// nothing is lost, what was done with is not repeated, and what is repeated has the same
// ID and is of one batch.
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
	dice := rand.New(rand.NewPCG(seed, 5))
	b.dead(t, records)
	name := b.source + "-killed"
	for _, point := range []string{lettersRead, recordsSent, recordsConfirmed, lettersDone, "", "", ""} {
		p := child.Start(t, redriving, b.seeds[0], b.letters, name, point, fmt.Sprint(dice.IntN(4)))
		done := map[string]bool{}
		note := func(words []string) {
			for _, value := range words[min(len(words), 1):] { // none: it has ended
				done[value] = true
			}
		}
		if point == "" { // at any moment
			for range 1 + dice.IntN(20) {
				note(<-p.Lines)
			}
			pass(t.Context(), time.Duration(dice.IntN(3_000))*time.Microsecond)
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

// times is how often each value is there.
func times(records []broker.Record) map[string]int {
	n := map[string]int{}
	for _, r := range records {
		n[string(r.Value)]++
	}
	return n
}

// notAgain checks that the next reader of a name gets nothing of what is done with.
func (b *fixture) notAgain(t testing.TB, name string, done map[string]bool) {
	t.Helper()
	r, err := Read(limited(t), b.at(b.letters), name)
	if err != nil {
		t.Fatal(err)
	}
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
