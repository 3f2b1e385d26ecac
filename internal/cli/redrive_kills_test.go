package cli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/kafka"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// TestRedriveKilledAtAnyMoment kills redrives to a broker with kill -9, from a topic
// and from the office. In the end every record is there, and what is there twice has the
// same redrive ID. How much is repeated is seen where groups are small: in broker/kafka for
// topics, in redrive for the office. Here all letters are in one or two.
func TestRedriveKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "redrive-kills", func(t *testing.T, seed uint64) int {
		return redriveKilled(t, newTopics(t, testservers.FakeKafka(t, "in", "in.dlq"), "in"), seed)
	})
}

// The same on a real broker, once from a topic and once from the office.
func TestRedriveKilledOnARealBroker(t *testing.T) {
	t.Parallel()
	own := testservers.OwnKafka(t)
	admin, err := kadm.NewOptClient(kgo.SeedBrokers(own.Seed))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for n, in := range []string{"one", "two"} {
		made, err := admin.CreateTopics(t.Context(), testservers.FakeParts, 1, nil, in, in+".dlq")
		if err != nil || made.Error() != nil {
			t.Fatal(err, made.Error())
		}
		redriveKilled(t, newTopics(t, own.Seed, in), uint64(n+1))
	}
}

// killedRecords counts the letters of a redrive that is killed.
const killedRecords = 900

func redriveKilled(t *testing.T, k *topics, seed uint64) (kills int) {
	const records = killedRecords
	kills = 4
	rng := rand.New(rand.NewPCG(seed, 3))
	d := newWorkspace(t)
	args := []string{"dlq", "redrive", "--from", k.url(k.in + ".dlq"), "--all", "--rate", "3000", "--yes"}
	if seed%2 == 0 {
		d.nixie(0, "dlq", "adopt", k.url(k.in+".dlq"))
		args = []string{"dlq", "redrive", "--all", "--reason", "fixed", "--to", k.url(""), "--rate", "3000", "--yes"}
	}
	for range kills {
		k.killAfter(d, rng.IntN(records/kills), args)
	}
	d.nixie(0, args...)
	ids := map[string]string{}
	twice := 0
	for _, r := range k.there() {
		id := ""
		for _, h := range r.Headers {
			if h.Name == broker.HeaderRedriveID {
				id = string(h.Value)
			}
		}
		if before, again := ids[string(r.Value)]; again {
			twice++
			if before != id {
				t.Errorf("%s has the redrive IDs %s and %s", r.Value, before, id)
			}
		}
		ids[string(r.Value)] = id
	}
	t.Logf("%d of %d records, %d repeats after %d kills", len(ids), records, twice, kills)
	if len(ids) != records {
		t.Errorf("%d of %d records, %d repeats after %d kills", len(ids), records, twice, kills)
	}
	return kills
}

// topics is a cluster with letters that are for one of its topics.
type topics struct {
	*testing.T
	seed string
	in   string // its name; the letters lie on that with .dlq
}

func newTopics(t *testing.T, seed, in string) *topics {
	t.Helper()
	k := &topics{t, seed, in}
	to, err := kafka.Connect(kafka.Address{Seeds: []string{k.seed}})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	list := make([]broker.Publication, killedRecords)
	for i := range list {
		list[i] = broker.Publication{Channel: in + ".dlq", Key: fmt.Append(nil, i), Value: fmt.Append(nil, "value ", i),
			Headers: []broker.RecordHeader{
				{Name: broker.HeaderTopic, Value: []byte(in)}, {Name: broker.HeaderFailureReason, Value: []byte("permanent_error")},
			}}
	}
	for _, err := range to.Publish(t.Context(), list)() {
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *topics) url(topic string) string { return "kafka://" + k.seed + "/" + topic }

func (k *topics) read() *kafka.Reader {
	k.Helper()
	r, err := kafka.Read(k.Context(), kafka.Address{Seeds: []string{k.seed}, Topic: k.in}, "")
	if err != nil {
		k.Fatal(err)
	}
	return r
}

// there returns the records of the topic that records are redriven to.
func (k *topics) there() (all []broker.Record) {
	k.Helper()
	from := k.read()
	defer from.Close()
	for {
		some, err := from.Next(k.Context(), 1_000)
		if err != nil {
			k.Fatal(err)
		}
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

// killAfter starts a redrive and kills it once more records are there.
func (k *topics) killAfter(d *workspace, more int, args []string) {
	k.Helper()
	count := func() int64 {
		from := k.read()
		defer from.Close()
		return from.Left()
	}
	begun := count()
	cmd := d.command("nixie", args...)
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it has been killed
	}()
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for count()-begun < int64(more) {
		select {
		case <-look.C:
		case <-ended:
			return // it was quicker
		case <-ctx.Done():
			k.Fatal("nothing is redriven")
		}
	}
	_ = cmd.Process.Kill() // it may have ended by itself
	<-ended
}
