package brokertest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// Run checks a driver clause by clause.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, fixture Fixture)
	}{
		{"RecordsArriveAsTheyWereSent", arrive},
		{"ReceiveWaitsForTheFirstRecord", waits},
		{"AcknowledgedIsDone", acknowledged},
		{"AckOutOfOrderKeepsTheRest", ackOutOfOrder},
		{"AnotherConsumerTakesOverAfterACrash", handOver},
		{"LateAckIsRefused", lateAck},
		{"ConsumersShareTheWork", newcomers},
		{"NackedRecordsComeAgain", givenBack},
		{"CrashesAreCounted", crashes},
		{"AToldConsumerThatVanishesIsNoCrash", toldVanish},
		{"LeasesEnd", leasesEnd},
		{"DelayedRecordsComeWhenDue", delayed},
		{"CloseCostsNothing", closeCostsNothing},
		{"PublishAnswersEach", publish},
		{"RecordsGoToThePartitionThatTheyName", partitionNamed},
		{"DescribeFindsMissingChannels", describe},
		{"ClosedIsClosed", closed},
		{"EveryRecordEndsOnce", everyRecordEnds},
		{"LettersAreWhole", lettersAreWhole},
		{"RedrivenOnesKnow", redrivenKnow},
		{"RedrivenOnesKnowOnStages", redrivenOnesKnowOnStages},
		{"NoAckBeforeTheLetter", noAckBeforeTheLetter},
		{"LettersLoseWhatDoesNotFit", lettersFit},
		{"ARecordWithoutALetterEndsItsWorker", heldUp},
		{"NoAckBeforeWhatFollows", noAckBeforeWhatFollows},
		{"NothingFollowsBeforeTheLetter", nothingBeforeTheLetter},
		{"OfficeAdoptsALetterOnce", officeKnows},
		{"CrashLoopsEnd", crashLoopsEnd},
		{"InnocentsSucceed", innocentsSucceed},
		{"RetriesWithoutDelayEnd", retriesEnd},
		{"ReleasesEnd", releasesEnd},
		{"WaivedOnesCostNothing", waivedCostNothing},
		{"JudgedOnceThenRun", judgedOnce},
		{"LettersKnowTheirFailures", lettersKnow},
		{"LettersKnowTheirFailuresOnStages", lettersOfStagesKnow},
		{"WhatWaitsInHandIsRenewed", waitingIsRenewed},
		{"ManyGoBackInOneCall", manyGoBack},
		{"KeysKeepTheirOrder", keysKeepOrder},
		{"OthersPassAWaitingRetry", othersPass},
		{"StagesKeepBackUntilDue", stagesKeepBack},
		{"RetriesGoFromStageToStage", stageToStage},
		{"RetriesKeepTheirPartition", retriesKeepPartition},
		{"ARetryThatNoStageTakesWaitsInHand", retriesStay},
		{"NoAckBeforeTheRetry", noAckBeforeTheRetry},
		{"StagesAreShared", stagesAreShared},
		{"ReadersRemember", readersRemember},
		{"TwoReadersOfOneNameForgetNothing", readersJoin},
		{"AdoptedOnce", adoptedOnce},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, h(t))
		})
	}
}

// timeout bounds each wait of the suite.
const timeout = 30 * time.Second

// limited returns a context that ends after the timeout.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	t.Cleanup(cancel)
	return ctx
}

// join adds a consumer that the end of the test closes.
func join(t testing.TB, fixture Fixture, stages ...broker.Stage) broker.Driver {
	t.Helper()
	d := fixture.Join(t, stages...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := d.Close(ctx); err != nil && nixie.CodeOf(err) != nixie.CodeUnavailable {
			t.Error(err)
		}
	})
	return d
}

// numbered makes n records with distinct keys and values.
func numbered(fixture Fixture, n int) []broker.Publication {
	all := make([]broker.Publication, n)
	for i := range all {
		all[i] = broker.Publication{Channel: fixture.Source(), Key: fmt.Append(nil, "key ", i), Value: fmt.Append(nil, "value ", i)}
	}
	return all
}

// receive receives n records, in as many calls as it needs.
func receive(t testing.TB, d broker.Driver, n int) []*broker.Record {
	t.Helper()
	ctx := limited(t)
	var got []*broker.Record
	for len(got) < n {
		some, err := d.Receive(ctx, broker.Want{Max: n - len(got), Wait: time.Second, Lease: timeout})
		if err != nil || ctx.Err() != nil {
			t.Fatalf("received %d of %d records: %v", len(got), n, err)
		}
		for i := range some {
			got = append(got, &some[i])
		}
	}
	return got
}

// all fails the test for each error.
func all(t testing.TB, errs []error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// values lists the values of records, sorted.
func values(records []*broker.Record) []string {
	var out []string
	for _, r := range records {
		out = append(out, string(r.Value))
	}
	slices.Sort(out)
	return out
}

// oddRecords makes records that a careless broker or driver would change.
func oddRecords() []broker.Publication {
	return []broker.Publication{
		{Key: []byte("k"), Value: []byte("v")},
		{Key: nil, Value: []byte("no key")},
		{Key: []byte{}, Value: []byte("empty key")},
		{Key: []byte("a tombstone"), Value: nil},
		{Key: []byte("empty"), Value: []byte{}},
		{Key: []byte{0, 255, 254}, Value: []byte{0xff, 0, '\n', 0xc3}},
		{Key: []byte("headers"), Value: []byte("v"), Headers: []broker.RecordHeader{
			{Name: "a", Value: []byte("1")}, {Name: "A", Value: []byte("2")}, {Name: "a", Value: []byte{0, 0xff}},
			{Name: "empty", Value: []byte{}}, {Name: "Ünï", Value: []byte("x")},
		}},
	}
}

func arrive(t *testing.T, fixture Fixture) {
	sent := oddRecords()
	for i := range sent {
		sent[i].Channel = fixture.Source()
	}
	fixture.Produce(t, sent...)
	got := receive(t, join(t, fixture), len(sent))
	ids := map[[16]byte]bool{}
	for _, p := range sent {
		n := slices.IndexFunc(got, func(r *broker.Record) bool { return same(&p, r) })
		if n < 0 {
			t.Errorf("record with key %q did not arrive as it was sent", p.Key)
			continue
		}
		r := got[n]
		if r.Channel != fixture.Source() || r.Timestamp.IsZero() || ids[r.ID] {
			t.Errorf("record %q: %+v", p.Key, r)
		}
		ids[r.ID] = true
	}
}

// same compares all that a sender gave.
func same(p *broker.Publication, r *broker.Record) bool {
	return sameBytes(p.Key, r.Key) && sameBytes(p.Value, r.Value) &&
		slices.EqualFunc(p.Headers, r.Headers, func(a, b broker.RecordHeader) bool {
			return a.Name == b.Name && bytes.Equal(a.Value, b.Value)
		})
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func waits(t *testing.T, fixture Fixture) {
	d := join(t, fixture)
	if got, err := d.Receive(t.Context(), broker.Want{Max: 10, Lease: timeout}); len(got) > 0 || err != nil {
		t.Errorf("%d records, %v", len(got), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := d.Receive(ended, broker.Want{Max: 10, Wait: timeout, Lease: timeout}); len(got) > 0 || err != nil {
		t.Errorf("%d records, %v", len(got), err)
	}
	fixture.Produce(t, numbered(fixture, 3)...)
	if got := values(receive(t, d, 3)); fmt.Sprint(got) != "[value 0 value 1 value 2]" {
		t.Errorf("got %q", got)
	}
}

func acknowledged(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 5)...)
	first := join(t, fixture)
	all(t, first.Ack(t.Context(), receive(t, first, 5)))
	if err := first.Close(limited(t)); err != nil {
		t.Fatal(err)
	}
	fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Value: []byte("last")})
	if got := values(receive(t, join(t, fixture), 1)); got[0] != "last" {
		t.Errorf("%q came again", got)
	}
}

// An acknowledgement out of order does not finish earlier records.
func ackOutOfOrder(t *testing.T, fixture Fixture) {
	const n = 20
	for i := range n {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Appendf(nil, "value %02d", i)})
	}
	first := join(t, fixture)
	got := receive(t, first, n)
	all(t, first.Ack(t.Context(), slices.Concat(got[:3], got[4:])))
	if err := first.Close(limited(t)); err != nil {
		t.Fatal(err)
	}
	again := receive(t, join(t, fixture), 1)
	if string(again[0].Value) != string(got[3].Value) {
		t.Errorf("%q came, and %q was not done", again[0].Value, got[3].Value)
	}
}

func handOver(t *testing.T, fixture Fixture) {
	const n = 30
	fixture.Produce(t, numbered(fixture, n)...)
	first := fixture.Join(t)
	receive(t, first, n)
	fixture.Crash(t, first)
	second := join(t, fixture)
	seen := map[string]bool{}
	ctx := limited(t)
	for len(seen) < n && ctx.Err() == nil {
		got, err := second.Receive(ctx, broker.Want{Max: n, Wait: time.Second, Lease: timeout})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			seen[string(got[i].Value)] = true
			all(t, second.Ack(ctx, []*broker.Record{&got[i]}))
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d came to the next one", len(seen), n)
	}
}

func lateAck(t *testing.T, fixture Fixture) {
	fixture.Produce(t, numbered(fixture, 4)...)
	first := fixture.Join(t)
	got := receive(t, first, 4)
	fixture.Crash(t, first)
	receive(t, join(t, fixture), 1)
	for _, err := range first.Ack(limited(t), got) {
		if code := nixie.CodeOf(err); code != nixie.CodeLeaseLost && code != nixie.CodeUnavailable {
			t.Errorf("late ack: %v", err)
		}
	}
}

// Two consumers share the work. The first keeps its unfinished records, or is told that it lost
// them.
func newcomers(t *testing.T, fixture Fixture) {
	first := join(t, fixture)
	fixture.Produce(t, numbered(fixture, 60)...)
	held := receive(t, first, 60)
	alarm := first.Lost()
	second := join(t, fixture)
	ctx := limited(t)
	var moved []broker.Record
	for ctx.Err() == nil && len(moved) == 0 && first.Features().Ordered {
		if _, err := first.Receive(ctx, broker.Want{Max: 1, Wait: 10 * time.Millisecond, Lease: timeout}); err != nil {
			t.Fatal(err)
		}
		got, err := second.Receive(ctx, broker.Want{Max: 60, Wait: 10 * time.Millisecond, Lease: timeout})
		if err != nil {
			t.Fatal(err)
		}
		moved = append(moved, got...)
	}
	kept := map[[16]byte]bool{}
	for i, err := range first.Extend(ctx, held, time.Minute) {
		if err == nil {
			kept[held[i].ID] = true
		}
	}
	for _, r := range moved {
		if kept[r.ID] {
			t.Errorf("%q is with both", r.Value)
		}
	}
	if len(moved) > 0 {
		select {
		case <-alarm:
		default:
			t.Error("records were lost without a word")
		}
	}
}

func givenBack(t *testing.T, fixture Fixture) {
	d := join(t, fixture)
	f := d.Features()
	if !f.Nack {
		t.Skip("records of this broker are not given back")
	}
	fixture.Produce(t, numbered(fixture, 3)...)
	got := receive(t, d, 3)
	all(t, d.Nack(t.Context(), []broker.Return{
		{Record: got[0], As: broker.Released}, {Record: got[1], As: broker.Failed}, {Record: got[2], Delay: f.MaxDelay, As: broker.Failed},
	}))
	n := 2
	if f.MaxDelay == 0 {
		n = 3
	}
	for _, again := range receive(t, d, n) {
		want := map[[16]byte]int{got[1].ID: 1, got[2].ID: 1}[again.ID]
		if f.CountsAll {
			want = 1
		}
		released := 1 - want
		if again.PriorDeliveries != want || again.Releases != released || again.Crashes > 0 {
			t.Errorf("%q: %d deliveries before, want %d; %d releases, want %d; %d crashes", again.Value, again.PriorDeliveries, want,
				again.Releases, released, again.Crashes)
		}
	}
	if again, err := d.Receive(t.Context(), broker.Want{Max: 1, Lease: timeout}); len(again) > 0 || err != nil {
		t.Errorf("came at once: %v, %v", again, err)
	}
}

// The driver counts the crashes of a record that kills its holders, and of no other record.
func crashes(t *testing.T, fixture Fixture) {
	for i := range 10 {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Append(nil, i)})
	}
	for range 4 {
		d := fixture.Join(t)
		if got := receive(t, d, 1); string(got[0].Value) != "0" {
			t.Fatalf("%q came first", got[0].Value)
		}
		fixture.Crash(t, d)
	}
	d := join(t, fixture)
	first := receive(t, d, 1)[0]
	if first.Crashes < 4 && first.PriorDeliveries < 4 {
		t.Errorf("after four crashes: %d crashes, handed out %d times before", first.Crashes, first.PriorDeliveries)
	}
	all(t, d.Ack(t.Context(), []*broker.Record{first}))
	if next := receive(t, d, 1)[0]; next.Crashes > 0 || next.PriorDeliveries > 1 {
		t.Errorf("the next one has %d crashes", next.Crashes)
	}
}

// Consumers that were told to stop vanish with a record, and a few others between them. The former
// count only after lease.MaxStops of them, the latter as ever.
func toldVanish(t *testing.T, fixture Fixture) {
	d := fixture.Join(t)
	_, can := d.(lease.Stopper)
	done(t, d.Close(limited(t)))
	if !can || d.Features().CountsAll {
		t.Skip("this broker is not told of stops")
	}
	for i := range 3 {
		fixture.Produce(t, broker.Publication{Channel: fixture.Source(), Key: []byte("one"), Value: fmt.Append(nil, i)})
	}
	vanish := func(value string, told bool, crashes int) {
		t.Helper()
		d := fixture.Join(t)
		got := receive(t, d, 1)[0]
		if string(got.Value) != value || got.Crashes != crashes {
			t.Fatalf("%q came first with %d crashes, want %q with %d", got.Value, got.Crashes, value, crashes)
		}
		if told {
			done(t, d.(lease.Stopper).Stopping(limited(t), true))
		}
		fixture.Crash(t, d)
	}
	for range lease.MaxStops - 1 {
		vanish("0", true, 0)
	}
	vanish("0", false, 0)
	vanish("0", true, 1)
	vanish("0", true, 1) // one stop too many
	d = fixture.Join(t)
	first := receive(t, d, 1)[0]
	if first.Crashes != 2 || first.PriorDeliveries > first.Crashes {
		t.Errorf("%d crashes, %d deliveries before", first.Crashes, first.PriorDeliveries)
	}
	all(t, d.Ack(t.Context(), []*broker.Record{first}))
	done(t, d.Close(limited(t)))
	vanish("1", true, 0)
	d = join(t, fixture)
	if next := receive(t, d, 1)[0]; next.Crashes > 0 || next.PriorDeliveries > 0 {
		t.Errorf("a stop after an answer: %d crashes, %d deliveries before", next.Crashes, next.PriorDeliveries)
	}
}

func done(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, fixture Fixture) {
	d := join(t, fixture)
	list := oddRecords()
	for i := range list {
		list[i].Channel = letters(fixture)
	}
	odd := len(list)
	list = append(list,
		broker.Publication{Channel: fixture.Source() + ".missing", Value: []byte("v")},
		broker.Publication{Channel: letters(fixture), Value: incompressible(TooLarge)},
		broker.Publication{Channel: letters(fixture), Value: []byte("the last")})
	errs := d.Publish(limited(t), list)()
	all(t, errs[:odd])
	if nixie.CodeOf(errs[odd]) != nixie.CodeNotFound || nixie.CodeOf(errs[odd+1]) != nixie.CodeLimit || errs[odd+2] != nil {
		t.Errorf("answers %v", errs[odd:])
	}
	there := fixture.Records(t, letters(fixture))
	if len(there) != odd+1 {
		t.Fatalf("%d records of %d", len(there), odd+1)
	}
	for i := range odd {
		if !slices.ContainsFunc(there, func(r broker.Record) bool { return same(&list[i], &r) }) {
			t.Errorf("record with key %q is not there as it was given", list[i].Key)
		}
	}
}

// partitionNamed checks that a channel with partitions takes a record on the one that it names,
// with and without a key. If the channel does not have it, the key decides.
func partitionNamed(t *testing.T, fixture Fixture) {
	d := join(t, fixture)
	if !d.Features().Ordered {
		t.Skip("channels of this broker have no partitions")
	}
	list := []broker.Publication{{Channel: letters(fixture), Key: []byte("one"), Value: []byte("by key")}}
	for _, at := range []int32{0, 1, 1 << 20} {
		list = append(list, broker.Publication{Channel: letters(fixture), Key: []byte("one"), Value: fmt.Append(nil, at), Partition: &at},
			broker.Publication{Channel: letters(fixture), Value: fmt.Append(nil, "no key ", at), Partition: &at})
	}
	all(t, d.Publish(limited(t), list)())
	there := partitionsOf(fixture.Records(t, letters(fixture)))
	if there["0"] != 0 || there["1"] != 1 || there["no key 0"] != 0 || there["no key 1"] != 1 || there["1048576"] != there["by key"] ||
		len(there) != len(list) {
		t.Errorf("partitions %v", there)
	}
}

// partitionsOf returns the partitions of records by their values.
func partitionsOf(records []broker.Record) map[string]int32 {
	there := map[string]int32{}
	for _, r := range records {
		there[string(r.Value)] = r.Partition
	}
	return there
}

// incompressible returns bytes that no codec makes fewer, always the same ones.
func incompressible(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(out) // it never fails
	return out
}

func describe(t *testing.T, fixture Fixture) {
	got, err := join(t, fixture).Describe(limited(t), []string{fixture.Source(), fixture.Source() + ".missing", letters(fixture)})
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if got[0].Missing || !got[1].Missing || got[2].Missing || got[1].Name != fixture.Source()+".missing" {
		t.Errorf("%+v", got)
	}
}

func closed(t *testing.T, fixture Fixture) {
	d := fixture.Join(t)
	fixture.Produce(t, numbered(fixture, 1)...)
	got := receive(t, d, 1)
	ctx := limited(t)
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := d.Receive(ctx, broker.Want{Max: 1, Lease: timeout})
	for what, err := range map[string]error{
		"receive": err, "publish": d.Publish(ctx, []broker.Publication{{Channel: letters(fixture)}})()[0], "close": d.Close(ctx),
	} {
		if nixie.CodeOf(err) != nixie.CodeUnavailable {
			t.Errorf("%s after close: %v", what, err)
		}
	}
	if err := d.Ack(ctx, got)[0]; err == nil {
		t.Error("ack after close was taken")
	}
}
