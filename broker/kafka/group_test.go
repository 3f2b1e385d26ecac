package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// take receives n records from a driver.
func take(t testing.TB, d *Driver, n int) []*broker.Record {
	t.Helper()
	ctx := limited(t)
	var got []*broker.Record
	for len(got) < n && ctx.Err() == nil {
		some, err := d.Receive(ctx, broker.Want{Max: n - len(got), Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for i := range some {
			got = append(got, &some[i])
		}
	}
	if len(got) < n {
		t.Fatalf("received %d of %d", len(got), n)
	}
	return got
}

// groupState returns the committed offset and crashes of a partition.
func (b *fixture) groupState(t testing.TB, part int32) (offset int64, crashes int) {
	t.Helper()
	offsets, err := kadm.NewClient(b.client).FetchOffsets(limited(t), b.source)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := offsets.Lookup(b.source, part)
	if !ok {
		return -1, 0
	}
	return o.At, readSuspects(&o.Metadata).crashes
}

// fill adds n records of one key to the source.
func (b *fixture) fill(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		b.Produce(t, broker.Publication{Channel: b.source, Key: []byte("one"), Value: []byte{byte(i)}})
	}
}

// A member that leaves reports no failed commit if a later one had everything.
func TestLaterCommitClearsTheError(t *testing.T) {
	b := fake(t)
	b.fill(t, 4)
	d, _ := b.open(t, nil)
	got := take(t, d, 4)
	refused := make(chan struct{})
	b.cluster.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		asked := r.(*kmsg.OffsetCommitRequest)
		answer := asked.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, topic := range asked.Topics {
			to := kmsg.OffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
			for _, p := range topic.Partitions {
				to.Partitions = append(to.Partitions,
					kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: kerr.UnknownServerError.Code})
			}
			answer.Topics = append(answer.Topics, to)
		}
		close(refused)
		return answer, nil, true
	})
	all(t, d.Ack(t.Context(), got))
	<-refused
	if err := d.Close(limited(t)); err != nil {
		t.Error(err)
	}
	if offset, _ := b.groupState(t, got[0].Partition); offset != 4 {
		t.Errorf("%d are committed", offset)
	}
}

// A member that was thrown out commits nothing, learns of it, and may not settle its records.
func TestLostMemberCommitsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.fill(t, 10)
		slow, _ := b.open(t, nil)
		defer closed(t, slow)
		got := take(t, slow, 10)
		all(t, slow.Ack(t.Context(), got[:2]))
		part := got[0].Partition
		for offset := int64(0); offset < 2; offset, _ = b.groupState(t, part) {
		}
		alarm := slow.Lost()
		b.kick(t, slow)
		_ = slow.Ack(t.Context(), got[2:5]) // it may not know yet, and the group will not learn of it
		select {
		case <-alarm:
		case <-limited(t).Done():
			t.Fatal("the driver did not tell that the partition is lost")
		}
		for _, err := range slow.Ack(t.Context(), got[5:]) {
			if nixie.CodeOf(err) != nixie.CodeLeaseLost {
				t.Errorf("late ack: %v", err)
			}
		}
		again := take(t, slow, 1)
		if again[0].Offset != 2 || again[0].Epoch <= got[0].Epoch {
			t.Errorf("goes on at %d in epoch %d", again[0].Offset, again[0].Epoch)
		}
		if offset, _ := b.groupState(t, part); offset != 2 {
			t.Errorf("%d is committed", offset)
		}
	})
}

func closed(t testing.TB, d *Driver) {
	t.Helper()
	if err := d.Close(limited(t)); err != nil {
		t.Error(err)
	}
}

func all(t testing.TB, errs []error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// A holder counts from before its first record until it gives the partition back in good order. It
// does not count if it vanished with nothing in hand.
func TestOnlyCrashesCount(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		b := make(t)
		b.fill(t, 3)
		var part int32
		for range 4 { // each leaves in good order, with nothing done
			d, _ := b.open(t, nil)
			part = take(t, d, 3)[0].Partition
			if offset, crashes := b.groupState(t, part); offset != 0 || crashes != 1 {
				t.Errorf("in hand: offset %d, %d crashes", offset, crashes)
			}
			closed(t, d)
			if offset, crashes := b.groupState(t, part); offset != 0 || crashes != 0 {
				t.Errorf("given back: offset %d, %d crashes", offset, crashes)
			}
		}
		for range 4 { // each vanishes with nothing in hand
			d := b.Join(t).(*Driver)
			b.fill(t, 1)
			got := take(t, d, 1)
			for n := range got {
				all(t, d.Ack(t.Context(), got[n:n+1]))
			}
			ctx := limited(t)
			for offset, crashes := int64(0), 1; crashes > 0 || offset <= got[0].Offset; offset, crashes = b.groupState(t, part) {
				if ctx.Err() != nil {
					t.Fatalf("offset %d, %d crashes", offset, crashes)
				}
				more, err := d.Receive(ctx, broker.Want{Max: 10})
				if err != nil {
					t.Fatal(err)
				}
				for n := range more {
					got = append(got, &more[n])
					all(t, d.Ack(ctx, got[len(got)-1:]))
				}
			}
			b.Crash(t, d)
		}
		b.fill(t, 1)
		d, _ := b.open(t, nil)
		defer closed(t, d)
		if r := take(t, d, 1)[0]; r.Crashes != 0 {
			t.Errorf("%d crashes of a record that no member had", r.Crashes)
		}
	})
}

// Few holders die before a poison record is found, however many records come before it: each holder
// commits at least half of the remaining ones.
func TestSuspectsHalveUntilThePoisonIsFound(t *testing.T) {
	b := fake(t)
	const n, poison, crashes = 300, 200, 5
	b.fill(t, n)
	for deaths := 0; ; deaths++ {
		d := b.Join(t).(*Driver)
		found := false
		for !found {
			got, err := d.Receive(limited(t), broker.Want{Max: n, Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i].Offset == poison {
					found = true
				}
				if got[i].Offset == poison && got[i].Crashes >= crashes {
					t.Logf("%d holders", deaths)
					closed(t, d)
					return
				}
			}
			for i := range got {
				if !found { // the records that came with it die with it
					all(t, d.Ack(t.Context(), []*broker.Record{&got[i]}))
				}
			}
		}
		if b.Crash(t, d); deaths > crashes+9 { // 2⁹ is more than the number of records
			offset, counted := b.groupState(t, 0)
			t.Fatalf("%d holders vanished, %d are committed, %d crashes", deaths, offset, counted)
		}
	}
}

// A member that gives a partition up waits a short time for its records in hand and commits them.
// It does not wait for records that no worker has begun.
func TestGrace(t *testing.T) {
	b := fake(t)
	b.fill(t, 10)
	first, _ := b.open(t, func(c *Config) { c.Grace = testTimeout / 2 })
	defer closed(t, first)
	got := take(t, first, 10)
	alarm := first.Lost()
	var others []*Driver
	for range 3 { // more members than partitions: one of them gets it
		d, _ := b.open(t, nil)
		others = append(others, d)
	}
	select {
	case <-alarm:
	case <-time.After(testTimeout / 3):
		closed(t, others[0])
		t.Fatal("the partition stayed where it is: nothing was tested")
	}
	for i, err := range first.Extend(t.Context(), got[4:], 0) {
		if nixie.CodeOf(err) != nixie.CodeLeaseLost {
			t.Errorf("record %d may still be begun: %v", i, err)
		}
	}
	all(t, first.Extend(t.Context(), got[:4], time.Minute))
	all(t, first.Ack(t.Context(), got[:4]))
	ctx := limited(t)
	for ctx.Err() == nil {
		for _, d := range others {
			more, err := d.Receive(ctx, broker.Want{Max: 1, Wait: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if len(more) > 0 {
				if more[0].Offset != 4 {
					t.Errorf("goes on at %d", more[0].Offset)
				}
				for _, d := range others {
					closed(t, d)
				}
				return
			}
		}
	}
	t.Fatal("no member got the partition")
}

// The driver fetches no more of a partition than MaxAhead records after an unfinished one, and goes
// on when that is finished.
func TestMaxAhead(t *testing.T) {
	b := fake(t)
	const n, ahead = 200, 20
	b.fill(t, n)
	d, _ := b.open(t, func(c *Config) { c.MaxAhead = ahead })
	defer closed(t, d)
	first := take(t, d, 1)
	seen, empty := 1, 0
	ctx := limited(t)
	receive := func() (got int) {
		more, err := d.Receive(ctx, broker.Want{Max: ahead / 2, Wait: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for i := range more {
			all(t, d.Ack(ctx, []*broker.Record{&more[i]}))
		}
		return len(more)
	}
	for empty < 5 && ctx.Err() == nil {
		if got := receive(); got > 0 {
			seen += got
		} else {
			empty++
		}
	}
	if seen > 2*ahead {
		t.Errorf("%d records are ahead, the bound is %d", seen, ahead)
	}
	all(t, d.Ack(ctx, first))
	for seen < n && ctx.Err() == nil {
		seen += receive()
	}
	if seen != n {
		t.Errorf("%d of %d came", seen, n)
	}
}
