package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/redrive"
)

// at returns the address of a topic.
func (b *fixture) at(topic string) Address { return Address{Seeds: b.seeds, Topic: topic} }

// move redrives the letters of the fixture; change may set more fields.
func (b *fixture) move(t testing.TB, name string, change func(*redrive.Mover)) (redrive.Moved, error) {
	t.Helper()
	from := b.reader(t, b.letters, name)
	defer from.Close()
	to, err := Connect(b.at(""))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	m := redrive.Mover{From: from, Destination: redrive.Destination{To: to}}
	if change != nil {
		change(&m)
	}
	return m.Run(limited(t))
}

// dead adds n letters to the topic of letters, as this product writes them.
func (b *fixture) dead(t testing.TB, n int) {
	t.Helper()
	list := make([]*kgo.Record, n)
	for i := range list {
		list[i] = &kgo.Record{Topic: b.letters, Key: fmt.Append(nil, "key ", i), Value: fmt.Append(nil, "value ", i),
			Headers: []kgo.RecordHeader{
				{Key: "theirs", Value: []byte{byte(i), 0xff}}, {Key: broker.HeaderTopic, Value: []byte(b.source)},
				{Key: broker.HeaderPartition, Value: []byte("1")}, {Key: broker.HeaderOffset, Value: fmt.Append(nil, i)},
				{Key: broker.HeaderFailureReason, Value: []byte("permanent_error")},
				{Key: broker.HeaderReason, Value: []byte("validation")},
				{Key: broker.HeaderFirstFailureAt, Value: []byte("1700000000000")},
				{Key: broker.HeaderLastFailureAt, Value: []byte("1700000001000")},
			}}
	}
	if err := b.client.ProduceSync(limited(t), list...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func valuesOf(records []broker.Record) []string {
	var out []string
	for _, r := range records {
		out = append(out, string(r.Value))
	}
	slices.Sort(out)
	return out
}

func headersOf(r *broker.Record, name string) (values []string) {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			values = append(values, string(h.Value))
		}
	}
	return values
}

// S16: a redrive sends each record once, however often it runs. It sends as many as it may, and
// goes on where it stopped.
func TestS16_RedriveGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.dead(t, 25)
		for n, c := range []struct{ max, sent, all int }{{7, 7, 7}, {7, 7, 14}, {0, 11, 25}, {0, 0, 25}} {
			got, err := b.move(t, b.source+"-again", func(m *redrive.Mover) { m.Max, m.Batch = c.max, 5 })
			if err != nil || got.Redriven != int64(c.sent) {
				t.Errorf("run %d: %+v, %v", n, got, err)
			}
			if there := b.Records(t, b.source); len(there) != c.all {
				t.Errorf("run %d: %d were sent in all", n, len(there))
			}
		}
		there := b.Records(t, b.source)
		if seen := slices.Compact(valuesOf(there)); len(seen) != 25 {
			t.Errorf("%d different ones: %q", len(seen), seen)
		}
		for i := range there {
			r := &there[i]
			if len(headersOf(r, broker.HeaderRedriveCount)) != 1 || headersOf(r, broker.HeaderRedriveCount)[0] != "1" ||
				len(headersOf(r, broker.HeaderFailureReason)) != 0 ||
				len(headersOf(r, broker.HeaderRedrivenAt)) != 1 || headersOf(r, broker.HeaderTopic)[0] != b.source ||
				headersOf(r, broker.HeaderFirstFailureAt)[0] != "1700000000000" ||
				len(headersOf(r, "theirs")) != 1 || headersOf(r, broker.HeaderRedriveID) == nil {
				t.Errorf("headers of a redriven record: %+v", r.Headers)
			}
		}
	})
}

// The next redrive gets the records that a filter left, and none that was sent, in any order.
func TestRedriveOfAChoice(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.dead(t, 60)
		third := func(k int64) func(*redrive.Mover) {
			return func(m *redrive.Mover) {
				m.Choose = func(r *broker.Record) bool { return r.Headers[3].Value[0]%3 == byte('0'+k)%3 } // by the offset where it died
			}
		}
		sent := int64(0)
		for k := range int64(3) {
			got, err := b.move(t, b.source+"-choice", third(k))
			if err != nil || got.Passed+got.Redriven != 60-sent || got.Redriven == 0 {
				t.Errorf("third %d: %+v, %v", k, got, err)
			}
			sent += got.Redriven
		}
		if there := slices.Compact(valuesOf(b.Records(t, b.source))); sent != 60 || len(there) != 60 {
			t.Errorf("%d sent, %d different ones there", sent, len(there))
		}
	})
}

// A dry run tells what the run then does, and changes nothing.
func TestDryRunOfAMove(t *testing.T) {
	b := fake(t)
	b.dead(t, 10)
	try, err := b.move(t, b.source+"-g", func(m *redrive.Mover) { m.DryRun, m.Max = true, 6 })
	if err != nil || try.Redriven != 6 || len(b.Records(t, b.source)) != 0 {
		t.Fatalf("%+v, %v", try, err)
	}
	got, err := b.move(t, b.source+"-g", func(m *redrive.Mover) { m.Max = 6 })
	if err != nil || fmt.Sprint(got.To, got.Redriven) != fmt.Sprint(try.To, try.Redriven) {
		t.Errorf("dry %+v, real %+v, %v", try, got, err)
	}
}

// A record that was redriven too often goes to quarantine with all that it died of. A record that
// cannot be sent stays, and holds up no other.
func TestQuarantineAndRefusals(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.create(t, 1, nil, b.source+".quarantine")
		overCap := &kgo.Record{Topic: b.letters, Value: []byte("overCap"), Headers: []kgo.RecordHeader{
			{Key: broker.HeaderTopic, Value: []byte(b.source)}, {Key: broker.HeaderFailureReason, Value: []byte("permanent_error")},
			{Key: "X-Redrive-Count", Value: []byte("2")}, {Key: broker.HeaderRedriveCount, Value: []byte("3")},
		}}
		lost := &kgo.Record{Topic: b.letters, Value: []byte("lost"),
			Headers: []kgo.RecordHeader{{Key: broker.HeaderTopic, Value: []byte(b.source + ".gone")},
				{Key: broker.HeaderFailureReason, Value: []byte("x")}}}
		round := &kgo.Record{Topic: b.letters, Value: []byte("round"),
			Headers: []kgo.RecordHeader{{Key: broker.HeaderTopic, Value: []byte(b.letters)},
				{Key: broker.HeaderFailureReason, Value: []byte("x")}}}
		if err := b.client.ProduceSync(limited(t), overCap, lost, round).FirstErr(); err != nil {
			t.Fatal(err)
		}
		b.dead(t, 5)
		move := func(quarantine string) redrive.Moved {
			got, err := b.move(t, b.source+"-q", func(m *redrive.Mover) {
				m.Destination.Quarantine, m.Destination.MaxRedrives = quarantine,
					3
			})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := move(""); got.Redriven != 5 || got.Skipped != 3 || len(got.Refused) != 3 {
			t.Errorf("%+v", got)
		}
		if got := move("{source}.quarantine"); got.Redriven != 0 || got.Quarantined != 1 || got.Skipped != 2 {
			t.Errorf("%+v", got)
		}
		aside := b.Records(t, b.source+".quarantine")
		if len(aside) != 1 || string(aside[0].Value) != "overCap" || len(aside[0].Headers) != 4 {
			t.Errorf("%+v", aside)
		}
	})
}

// A redrive sends key, value and headers of the sender unchanged. Edits change what they name, and
// never the letter.
func TestRedrivenAsItWas(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		odd := []*kgo.Record{
			{Key: nil, Value: nil}, {Key: []byte{}, Value: []byte{}}, {Key: []byte{0, 255}, Value: bytes.Repeat([]byte{0xfe}, 900_000)},
			{Key: []byte("h"), Value: []byte("v"),
				Headers: []kgo.RecordHeader{{Key: "a", Value: nil}, {Key: "a", Value: []byte{0xff}}, {Key: "drop", Value: []byte("1")},
					{Key: "", Value: []byte("x")}}},
		}
		for _, r := range odd {
			r.Topic = b.letters
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: broker.HeaderTopic, Value: []byte(b.source)})
		}
		if err := b.client.ProduceSync(limited(t), odd...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		got, err := b.move(t, "", func(m *redrive.Mover) {
			m.Destination.Drop, m.Destination.Set = []string{"DROP"}, []broker.RecordHeader{{Name: "by", Value: []byte("ann")}}
			m.Destination.Transform = func(_ context.Context, r *broker.Returning) error {
				if string(r.Key) == "h" {
					r.Value = append(slices.Clone(r.Value), '!')
				}
				if r.Key != nil && len(r.Key) == 0 {
					return errors.New("not this one")
				}
				return nil
			}
		})
		if err != nil || got.Redriven != 3 || got.Skipped != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, r := range b.Records(t, b.source) {
			n := slices.IndexFunc(odd, func(o *kgo.Record) bool { return bytes.Equal(o.Key, r.Key) && (o.Key == nil) == (r.Key == nil) })
			want := odd[n].Value
			if string(r.Key) == "h" {
				want = []byte("v!")
				if h := r.Headers; len(h) < 4 || h[0].Name != "a" || h[0].Value != nil || h[1].Value[0] != 0xff || h[2].Name != "" ||
					h[3].Name != "by" {
					t.Errorf("headers %+v", h)
				}
			}
			if !bytes.Equal(r.Value, want) || (r.Value == nil) != (want == nil) {
				t.Errorf("%q: %d bytes, want %d", r.Key, len(r.Value), len(want))
			}
		}
	})
}

// A redrive skips records of aborted transactions, and control records hold nothing up.
func TestRedriveOfTransactions(t *testing.T) {
	b := actual(t)
	ctx := limited(t)
	c, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.TransactionalID(b.source), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: b.letters, Value: fmt.Append(nil, n),
			Headers: []kgo.RecordHeader{{Key: broker.HeaderTopic, Value: []byte(b.source)}}}
		if err := c.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(ctx, how); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.move(t, b.source+"-tx", nil)
	if err != nil || got.Redriven != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	again, err := b.move(t, b.source+"-tx", nil)
	if err != nil || again.Read != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A redrive does not send a record that the group could not remember: it would be sent again.
func TestScatteredChoice(t *testing.T) {
	b := fake(t)
	list := []*kgo.Record{}
	for i := range 8_000 {
		list = append(list, &kgo.Record{Topic: b.letters, Key: []byte("one"), Value: fmt.Append(nil, i),
			Headers: []kgo.RecordHeader{{Key: broker.HeaderTopic, Value: []byte(b.source)}}})
	}
	if err := b.client.ProduceSync(limited(t), list...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	n := 0
	got, err := b.move(t, b.source+"-s", func(m *redrive.Mover) {
		m.Choose = func(*broker.Record) bool { n++; return n%4 == 0 }
	})
	if nixie.CodeOf(err) != nixie.CodeLimit || got.Redriven < 500 {
		t.Fatalf("%+v, %v", got, err)
	}
	rest, err := b.move(t, b.source+"-s", func(m *redrive.Mover) { m.Max = 60 }) // one by one, from the first gap
	if err != nil || rest.Redriven != 60 {
		t.Errorf("%+v, %v", rest, err)
	}
	if there := slices.Compact(valuesOf(b.Records(t, b.source))); int64(len(there)) != rest.Redriven+got.Redriven {
		t.Errorf("%d different ones", len(there))
	}
}

// A reader holds no more than one fetch brings, for any number that it is asked for, and returns
// all records in the end.
func TestReadingLargeRecords(t *testing.T) {
	b := fake(t)
	const n, size = 30, 900_000
	for i := range n {
		r := &kgo.Record{Topic: b.letters, Key: []byte("one"), Value: bytes.Repeat([]byte{byte(i)}, size)}
		if err := b.client.ProduceSync(limited(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	from := b.reader(t, b.letters, "large")
	defer from.Close()
	for all := 0; all < n; {
		got, err := from.Next(limited(t), n)
		if err != nil || len(got) == 0 || len(got)*size > DefaultFetchBytes+size {
			t.Fatalf("%d records at once, %v", len(got), err)
		}
		if all += len(got); got[0].Value[0] != byte(all-len(got)) {
			t.Errorf("record %d is number %d", got[0].Value[0], all-len(got))
		}
	}
}

// A redrive keeps its rate, by the clock that it is given.
func TestRateOfAMove(t *testing.T) {
	b := fake(t)
	b.dead(t, 30)
	now := time.Unix(1_700_000_000, 0)
	start := now
	got, err := b.move(t, "", func(m *redrive.Mover) {
		m.Rate, m.Clock = 10, func() time.Time { return now }
		m.Wait = func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil }
	})
	if took := now.Sub(start); err != nil || got.Redriven != 30 || took < 2900*time.Millisecond || took > 3*time.Second {
		t.Errorf("%+v in %s, %v", got, took, err)
	}
}

// S17: the count of redrives travels through consumer, letters and redrives for three generations,
// and then the record goes to quarantine.
func TestS17_ThreeGenerationsAndQuarantine(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.create(t, 1, nil, b.source+".quarantine")
		b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("k"), Value: []byte("v"),
			Headers: []broker.RecordHeader{{Name: "theirs", Value: []byte{0xff}}}})
		first := ""
		for generation := range 4 {
			h := b.start(t, func(context.Context, *nixie.Delivery) error { return errBad }, nil)
			letters := b.lettersOf(t, generation+1)
			h.leave(t)
			newest := slices.MaxFunc(letters, func(x, y broker.Record) int { return compareInt64(x.Offset, y.Offset) })
			count := headersOf(&newest, broker.HeaderRedriveCount)
			if generation > 0 && (len(count) != 1 || count[0] != fmt.Sprint(generation)) || headersOf(&newest, "theirs")[0] != "\xff" {
				t.Fatalf("generation %d: %q", generation, newest.Headers)
			}
			if at := headersOf(&newest, broker.HeaderFirstFailureAt); generation == 0 {
				first = at[0]
			} else if at[0] != first {
				t.Errorf("generation %d: first failed at %s, then at %s", generation, first, at[0])
			}
			got, err := b.move(t, b.source+"-s17",
				func(m *redrive.Mover) { m.Destination.MaxRedrives, m.Destination.Quarantine = 3, "{source}.quarantine" })
			if err != nil || generation < 3 && got.Redriven != 1 || generation == 3 && got.Quarantined != 1 {
				t.Fatalf("generation %d: %+v, %v", generation, got, err)
			}
		}
		if aside := b.Records(t, b.source+".quarantine"); len(aside) != 1 || headersOf(&aside[0], broker.HeaderRedriveCount)[0] != "3" ||
			len(headersOf(&aside[0], broker.HeaderFailureReason)) != 1 {
			t.Errorf("%+v", aside)
		}
	})
}

// Read implements [brokertest.ReadableFixture].
func (b *fixture) Read(t testing.TB, channel, name string) broker.Reader {
	t.Helper()
	if name != "" {
		name = b.source + "." + name
	}
	return b.reader(t, channel, name)
}

// reader opens a reader of a topic.
func (b *fixture) reader(t testing.TB, topic, name string) *Reader {
	t.Helper()
	r, err := Read(limited(t), b.at(topic), name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func header(r *broker.Record, name string) string {
	for _, h := range r.Headers {
		if h.Name == name {
			return string(h.Value)
		}
	}
	return ""
}

// Records and letters name the cluster, so that two topics of one name on two clusters differ.
func TestRecordsNameTheirCluster(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		want, err := clusterOf(limited(t), b.client)
		if err != nil || want == "" {
			t.Fatalf("the cluster is %q: %v", want, err)
		}
		b.dead(t, 1)
		from := b.reader(t, b.letters, "")
		defer from.Close()
		read, err := from.Next(limited(t), 1)
		if err != nil || len(read) != 1 {
			t.Fatal(read, err)
		}
		letter := broker.Adopted("kafka", &read[0], "")
		if got := letter.Message.Origin.Server; got != want {
			t.Errorf("the letter has the server %q, want %q", got, want)
		}
		if got := broker.FromRecord(&read[0]).Origin.Server; got != want {
			t.Errorf("the record has the server %q, want %q", got, want)
		}
		b.Produce(t, broker.Publication{Channel: b.source, Value: []byte("alive")})
		driver := b.Join(t)
		defer driver.Close(limited(t)) //nolint:errcheck // nothing is done
		var got []broker.Record
		for ctx := limited(t); len(got) == 0 && err == nil; {
			got, err = driver.Receive(ctx, broker.Want{Max: 1, Wait: time.Second})
		}
		if err != nil || got[0].Server != want {
			t.Errorf("the driver hands out %+v of another server than %q: %v", got, want, err)
		}
	})
}

// Since returns each record that was added after the reader was opened once, and none from before.
func TestReaderReturnsAddedRecords(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b, ctx := make(t), limited(t)
		b.dead(t, 20)
		r := b.reader(t, b.letters, "adds")
		defer r.Close()
		if some, err := r.Since(ctx); err != nil || len(some) > 0 {
			t.Errorf("%d records are said to be new, %v", len(some), err)
		}
		b.dead(t, 30)
		var all []broker.Record
		for len(all) < 30 && ctx.Err() == nil {
			some, err := r.Since(ctx)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, some...)
			sleep(ctx, time.Millisecond)
		}
		if some, err := r.Next(ctx, 100); err != nil || len(some) != 20 {
			t.Errorf("%d records are read, %v", len(some), err)
		}
		if values := slices.Compact(valuesOf(all)); len(all) != 30 || len(values) != 30 || headersOf(&all[0], broker.HeaderTopic) == nil {
			t.Errorf("%q", values)
		}
	})
}

// Records that the client returns with an error are not lost.
func TestAddedRecordsComeWithAnError(t *testing.T) {
	r := &Reader{topic: "in", partitions: map[int32]*readPartition{0: {partition: newPartition(topicPartition{"in", 0}, 0)}}}
	added, err := r.appendFetched(nil, kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "in", Partitions: []kgo.FetchPartition{
		{Partition: 0, Records: []*kgo.Record{{Topic: "in", Offset: 7, Value: []byte("v")}}},
		{Partition: 1, Err: kerr.TopicAuthorizationFailed},
	}}}}})
	if len(added) != 1 || string(added[0].Value) != "v" || nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("%d records, %v", len(added), err)
	}
}

// A redrive from a topic stops by itself when its records die again, after retries on stages too.
// When it runs again it goes on.
func TestMoveStopsWhenRecordsDieAgain(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.stages = []broker.Stage{{Channel: "{source}.retry", Delay: time.Millisecond}}
	b.create(t, 1, nil, b.source+".retry")
	b.dead(t, 120)
	var sick atomic.Bool
	sick.Store(true)
	h := b.start(t, func(context.Context, *nixie.Delivery) error {
		if sick.Load() {
			return errors.New("still down")
		}
		return nil
	}, func(_ *Config, _ *broker.Config, p *policy.Config) {
		p.MaxAttempts = 2
		p.Backoff.Base = time.Millisecond
	})
	ctx := limited(t)
	clock := time.UnixMilli(1_700_000_000_000)
	slow := func(m *redrive.Mover) {
		m.Rate, m.Batch, m.Clock, m.Stop = 10, 8, func() time.Time { return clock }, redrive.Stop{After: 3}
		m.Wait = func(_ context.Context, d time.Duration) error {
			clock = clock.Add(d)
			return nil
		}
	}
	got, err := b.move(t, "stops", func(m *redrive.Mover) {
		slow(m)
		wait := m.Wait
		m.Wait = func(_ context.Context, d time.Duration) error { // until the records that were sent are dead
			waitUntil(t, func() bool { return len(b.Records(t, b.letters)) >= 120+len(b.Records(t, b.source)) })
			return wait(ctx, d)
		}
	})
	stopped := (*redrive.StoppedError)(nil)
	if !errors.As(err, &stopped) || got.DiedAgain < 3 || got.Redriven > 60 || stopped.Moved < stopped.Again {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, r := range b.Records(t, b.letters) {
		if n := headersOf(&r, broker.HeaderOperation); headersOf(&r, broker.HeaderRedriveCount) != nil &&
			(len(n) != 1 || n[0] != got.Operation.String()) {
			t.Errorf("%s died again of redrive %q", r.Value, n)
		}
	}
	sick.Store(false)
	again, err := b.move(t, "stops", slow)
	h.leave(t)
	if err != nil || again.Redriven != 120 || again.DiedAgain != 0 {
		t.Errorf("%+v, %v", again, err)
	}
}
