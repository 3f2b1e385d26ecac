package kafka

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

// TestSharePointers lets share groups of a real broker reject records. Their dead letters have no
// body by default, and point to the record.
func TestSharePointers(t *testing.T) {
	server := testservers.NewestKafka(t, "log.cleaner.enable=true", "log.cleaner.backoff.ms=100")
	make := func(t *testing.T, copied bool) *fixture {
		t.Parallel()
		b := newFixture(t, []string{server.Seed})
		b.letters = "dlq." + b.source // the broker wants this prefix
		b.create(t, 1, map[string]*string{"errors.deadletterqueue.group.enable": kadm.StringPtr("true")}, b.letters)
		b.configureGroup(t, map[string]string{
			"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": b.letters,
			"errors.deadletterqueue.copy.record.enable": fmt.Sprint(copied),
		})
		return b
	}
	for name, copied := range map[string]bool{"headers only": false, "copied": true} {
		t.Run(name, func(t *testing.T) {
			t.Run("adopt and redrive", func(t *testing.T) { adoptPointers(t, make(t, copied)) })
			t.Run("redrive from the topic", func(t *testing.T) { redrivePointers(t, make(t, copied)) })
			t.Run("its source is deleted", func(t *testing.T) { pointersToNothing(t, make(t, copied), copied) })
		})
	}
	t.Run("that lead nowhere", func(t *testing.T) { pointersOfEveryKind(t, make(t, false)) })
}

// configureGroup sets what only a share group has.
func (b *fixture) configureGroup(t *testing.T, settings map[string]string) {
	t.Helper()
	ask, group := kmsg.NewPtrIncrementalAlterConfigsRequest(), kmsg.NewIncrementalAlterConfigsRequestResource()
	group.ResourceType, group.ResourceName = 32, b.source // 32 is a group
	for name, value := range settings {
		one := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		one.Name, one.Value = name, &value
		group.Configs = append(group.Configs, one)
	}
	ask.Resources = append(ask.Resources, group)
	answer, err := ask.RequestWith(limited(t), b.client)
	if err != nil || answer.Resources[0].ErrorCode != 0 {
		t.Fatal(err, kerr.ErrorForCode(answer.Resources[0].ErrorCode), answer.Resources[0].ErrorMessage)
	}
}

// rejected are records of every kind of key, body and headers.
func rejected(topic string) []*kgo.Record {
	return []*kgo.Record{
		{Topic: topic, Partition: 1, Key: []byte("order-1"), Value: []byte(`{"order":9007199254740993}`), Headers: []kgo.RecordHeader{
			{Key: "trace", Value: []byte("t-1")}, {Key: "trace", Value: []byte{0xff, 0}}, {Key: "empty"},
			{Key: broker.HeaderRedriveCount, Value: []byte("2")},
		}},
		{Topic: topic, Partition: 2, Value: []byte("without a key"), Headers: []kgo.RecordHeader{{Key: "tier", Value: []byte("gold")}}},
		{Topic: topic, Partition: 2, Key: []byte("gone"), Value: nil, Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("tombstone")}}},
		{Topic: topic, Partition: 0, Key: []byte{}, Value: []byte{}, Headers: []kgo.RecordHeader{{Key: "all", Value: []byte("empty")}}},
	}
}

// reject sends records, and lets the share group reject all of them.
func (b *fixture) reject(t *testing.T, records []*kgo.Record) {
	t.Helper()
	ctx := limited(t)
	b.produceAt(t, records...)
	group, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.ShareGroup(b.source), kgo.ConsumeTopics(b.source))
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	for n := 0; n < len(records); {
		fetches := group.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		n += fetches.NumRecords()
		group.MarkAcks(kgo.AckReject, fetches.Records()...)
	}
	if err := group.FlushAcks(ctx); err != nil {
		t.Fatal(err)
	}
	b.waitForEnd(t, b.letters, int64(len(records)))
}

// produceAt sends records to the partitions that they name.
func (b *fixture) produceAt(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	by, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	if err := by.ProduceSync(limited(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// waitForEnd waits until a topic has n records.
func (b *fixture) waitForEnd(t *testing.T, topic string, n int64) {
	t.Helper()
	admin, have := kadm.NewClient(b.client), int64(0)
	waitUntil(t, func() bool {
		have = 0
		ends, _ := admin.ListEndOffsets(limited(t), topic)
		ends.Each(func(o kadm.ListedOffset) { have += o.Offset })
		return have >= n
	})
	if have < n {
		t.Fatalf("topic %s has %d records, want %d", topic, have, n)
	}
}

// adoptAll adopts all letters of the fixture. It returns them, and how many were there before.
func (b *fixture) adoptAll(t *testing.T, st *memory.Store) (all []nixie.Letter, known int) {
	t.Helper()
	from := b.reader(t, b.letters, "adopt")
	defer from.Close()
	records, err := from.Next(limited(t), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		all = append(all, broker.Adopted("kafka", &records[i], ""))
	}
	receipts, errs := st.Adopt(t.Context(), all, "ann", "r")
	if errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	for _, r := range receipts {
		if r.Duplicate {
			known++
		}
	}
	return all, known
}

// redriveAll redrives all letters of an office to the live topic.
func (b *fixture) redriveAll(t *testing.T, st *memory.Store, force bool) redrive.Result {
	t.Helper()
	to, err := Connect(b.at(""))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	send, err := redrive.Destination{To: to}.Letters()
	if err != nil {
		t.Fatal(err)
	}
	e, err := redrive.New(redrive.Config{Store: st, Send: send})
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.Plan(t.Context(), store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "r", Force: force}, nixie.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(limited(t), op.ID)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// arrived compares the live topic with what was rejected: each record must be there twice, the
// second time with our headers after those of its sender.
func (b *fixture) arrived(t *testing.T, want []*kgo.Record) {
	t.Helper()
	b.waitForEnd(t, b.source, int64(2*len(want)))
	have := b.Records(t, b.source)
	for _, w := range want {
		count := 0
		for i := range have {
			if sameRecord(&have[i], w) {
				count++
			}
		}
		if count != 2 {
			t.Errorf("key %q, body %q and headers %v are there %d times, want 2", w.Key, w.Value, w.Headers, count)
		}
	}
	if len(have) != 2*len(want) {
		t.Errorf("the live topic has %d records, want %d", len(have), 2*len(want))
	}
}

// sameRecord compares key, body and headers of the sender.
func sameRecord(have *broker.Record, want *kgo.Record) bool {
	theirs := slices.DeleteFunc(slices.Clone(have.Headers), func(h broker.RecordHeader) bool { return broker.Ours(h.Name) })
	sent := slices.DeleteFunc(slices.Clone(want.Headers), func(h kgo.RecordHeader) bool { return broker.Ours(h.Key) })
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	return same(have.Key, want.Key) && same(have.Value, want.Value) && slices.EqualFunc(theirs, sent,
		func(a broker.RecordHeader, b kgo.RecordHeader) bool { return a.Name == b.Key && same(a.Value, b.Value) })
}

func adoptPointers(t *testing.T, b *fixture) {
	want := rejected(b.source)
	b.reject(t, want)
	st := memory.New(memory.Options{})
	all, _ := b.adoptAll(t, st)
	for _, l := range all {
		o := l.Message.Origin
		if l.Status != nixie.StatusOpen || !l.Redrivable || o.BodyAt != "" || o.Server == "" || o.Channel != b.source || o.Offset < 0 {
			t.Errorf("letter %+v of %+v", l, o)
		}
		if l.Message.LastFailure != "Offset rejected by client." || l.Message.Attempts != 1 {
			t.Errorf("the letter says %q after %d attempts", l.Message.LastFailure, l.Message.Attempts)
		}
		if redrives := l.Message.Redrives; redrives != 0 && (redrives != 2 || string(o.Key) != "order-1") {
			t.Errorf("%q was redriven %d times", o.Key, redrives)
		}
	}
	if r := b.redriveAll(t, st, false); r.Done != int64(len(want)) {
		t.Fatalf("%+v", r)
	}
	b.arrived(t, want)
	// Adopted once more they are the same letters.
	if _, known := b.adoptAll(t, st); known != len(want) {
		t.Errorf("%d of %d letters were known", known, len(want))
	}
}

func redrivePointers(t *testing.T, b *fixture) {
	want := rejected(b.source)
	b.reject(t, want)
	done, err := b.move(t, "m", func(m *redrive.Mover) { m.Destination.MaxRedrives = 2; m.Destination.Quarantine = b.source })
	if err != nil || done.Redriven != int64(len(want))-1 || done.Quarantined != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	b.waitForEnd(t, b.source, int64(2*len(want)))
	for _, w := range want[1:] {
		if n := b.copiesOf(t, w); n != 2 {
			t.Errorf("key %q is there %d times, want 2", w.Key, n)
		}
	}
}

// remove deletes a topic, and waits until the broker knows it.
func (b *fixture) remove(t *testing.T, topic string) {
	t.Helper()
	if _, err := kadm.NewClient(b.client).DeleteTopic(limited(t), topic); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool {
		ask, one := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
		one.Topic = &topic
		ask.Topics = append(ask.Topics, one)
		answer, err := ask.RequestWith(limited(t), b.client)
		return err == nil && kerr.ErrorForCode(answer.Topics[0].ErrorCode) == kerr.UnknownTopicOrPartition
	})
}

func (b *fixture) copiesOf(t *testing.T, want *kgo.Record) (n int) {
	for _, have := range b.Records(t, b.source) {
		if sameRecord(&have, want) {
			n++
		}
	}
	return n
}

func pointersToNothing(t *testing.T, b *fixture, copied bool) {
	want := rejected(b.source)
	b.reject(t, want)
	b.remove(t, b.source)
	st := memory.New(memory.Options{})
	all, _ := b.adoptAll(t, st)
	for _, l := range all {
		if l.Status != nixie.StatusReview || !strings.Contains(l.Note, "topic "+b.source+" with a partition ") ||
			(l.Message.Origin.BodyAt == "") != copied {
			t.Errorf("letter is %s, its body at %q: %s", l.Status, l.Message.Origin.BodyAt, l.Note)
		}
	}
	b.create(t, 3, nil, b.source) // made anew, and empty
	for _, force := range []bool{false, true} {
		if force && copied {
			continue // it has its body: a person decides
		}
		if r := b.redriveAll(t, st, force); r.Done != 0 || r.Skipped != int64(len(want)) {
			t.Errorf("with force %v: %+v", force, r)
		}
	}
	done, err := b.move(t, "m", nil)
	if err != nil || done.Redriven != 0 || done.Skipped != int64(len(want)) ||
		!strings.Contains(done.Refused[0].Why, "the topic was made anew") {
		t.Errorf("%+v, %v", done, err)
	}
	if have := b.Records(t, b.source); len(have) > 0 {
		t.Errorf("%d records came to the live topic", len(have))
	}
}

// pointersOfEveryKind adopts pointers that lead to a record, and those that lead nowhere.
func pointersOfEveryKind(t *testing.T, b *fixture) {
	other := func(part string, configs map[string]*string, parts int32) string {
		name := b.source + "." + part
		b.create(t, parts, configs, name)
		return name
	}
	plain := func(topic string, bodies ...string) {
		for _, body := range bodies {
			b.produceAt(t, &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(body)})
		}
	}
	there, deleted, anew, shorter := other("there", nil, 1), other("deleted", nil, 1), other("anew", nil, 1), other("shorter", nil, 1)
	trimmed, compacted, transactions := other("trimmed", nil, 1), other("compacted", compaction(), 1), other("transactions", nil, 1)
	for _, topic := range []string{there, deleted, anew, shorter, trimmed} {
		plain(topic, "first", "second")
	}
	plain(compacted, "old", "new")
	b.transaction(t, transactions, true, 2)  // offsets 0, and 1 for the control record
	b.transaction(t, transactions, false, 4) // 2 and 3
	open := b.transactional(t)
	defer open.Close()
	if err := open.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := open.ProduceSync(limited(t), &kgo.Record{Topic: transactions, Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	rows := []struct{ name, topic, partition, offset, want string }{
		{"a record", there, "0", "1", ""},
		{"a record of a transaction", transactions, "0", "0", ""},
		{"a topic that was deleted", deleted, "0", "1", "is not there any more"},
		{"a topic that was made anew", anew, "0", "1", "is younger than the letter"},
		{"a topic that was made anew and is shorter", shorter, "0", "1", "has no such offset"},
		{"an offset of the future", there, "0", "9007199254740993", "has no such offset"},
		{"a topic with fewer partitions than then", there, "7", "0", "with a partition 7 is not there any more"},
		{"a record that was deleted", trimmed, "0", "0", "has no such offset"},
		{"a record that was compacted", compacted, "0", "0", "as after a compaction"},
		{"a record of an aborted transaction", transactions, "0", "2", "or its transaction was aborted"},
		{"a control record", transactions, "0", "1", "a control record"},
		{"a record of an open transaction", transactions, "0", "4", "a transaction is open"},
		{"no offset", there, "0", "", "has no such offset"},
		{"a negative partition", there, "-1", "0", "a partition -1 is not there"},
		{"a topic that no topic can be", "a topic/x", "0", "0", "is not there any more"},
	}
	for _, row := range rows {
		b.produceAt(t, pointer(b.letters, row.topic, row.partition, row.offset))
	}
	b.remove(t, deleted)
	for _, topic := range []string{anew, shorter} {
		b.remove(t, topic)
		b.create(t, 1, nil, topic)
	}
	plain(anew, "another first", "another second")
	plain(shorter, "another first")
	if _, err := kadm.NewClient(b.client).DeleteRecords(limited(t), kadm.Offsets{trimmed: {0: {Topic: trimmed, At: 1}}}); err != nil {
		t.Fatal(err)
	}
	b.waitForCompaction(t, compacted)
	st := memory.New(memory.Options{})
	all, _ := b.adoptAll(t, st)
	var table strings.Builder
	for i, row := range rows {
		l := &all[i]
		fmt.Fprintf(&table, "%-44s %-7s %s\n", row.name, l.Status, cmp.Or(l.Note, "body "+string(l.Message.Body)))
		fine := row.want == "" && l.Status == nixie.StatusOpen && len(l.Message.Body) > 0
		lost := row.want != "" && l.Status == nixie.StatusReview && strings.Contains(l.Note, row.want) && l.Message.Origin.BodyAt != ""
		if !fine && !lost {
			t.Errorf("%s: %s, %q, want %q", row.name, l.Status, l.Note, row.want)
		}
	}
	t.Log("\n" + table.String())
	if r := b.redriveAll(t, st, true); r.Done != 2 || r.Skipped != int64(len(rows)-2) {
		t.Errorf("%+v", r)
	}
}

// pointer is a dead letter as share groups of version 4.4 write it.
func pointer(letters, topic, partition, offset string) *kgo.Record {
	return &kgo.Record{Topic: letters, Headers: []kgo.RecordHeader{
		{Key: "__dlq.errors.topic", Value: []byte(topic)}, {Key: "__dlq.errors.partition", Value: []byte(partition)},
		{Key: "__dlq.errors.offset", Value: []byte(offset)}, {Key: "__dlq.errors.group", Value: []byte("g")},
		{Key: "__dlq.errors.delivery.count", Value: []byte("1")},
		{Key: "__dlq.errors.message", Value: []byte("Offset rejected by client.")},
	}}
}

// transactional makes a producer of transactions.
func (b *fixture) transactional(t *testing.T) *kgo.Client {
	t.Helper()
	by, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.TransactionalID(fmt.Sprintf("t%d", fixtures.Add(1))))
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// transaction sends one record in a transaction, and ends it. Then the topic has an end, once the
// broker has written that of the transaction.
func (b *fixture) transaction(t *testing.T, topic string, commit bool, end int64) {
	t.Helper()
	by := b.transactional(t)
	defer by.Close()
	err := by.BeginTransaction()
	if err == nil {
		err = by.ProduceSync(limited(t), &kgo.Record{Topic: topic, Value: []byte("in a transaction")}).FirstErr()
	}
	if err == nil {
		err = by.EndTransaction(limited(t), kgo.TransactionEndTry(commit))
	}
	if err != nil {
		t.Fatal(err)
	}
	b.waitForEnd(t, topic, end)
}

func compaction() map[string]*string {
	return map[string]*string{
		"cleanup.policy": kadm.StringPtr("compact"), "min.cleanable.dirty.ratio": kadm.StringPtr("0.001"),
		"segment.ms": kadm.StringPtr("100"), "min.compaction.lag.ms": kadm.StringPtr("0"),
	}
}

// waitForCompaction adds records until the first one of a topic is compacted away.
func (b *fixture) waitForCompaction(t *testing.T, topic string) {
	t.Helper()
	gone := false
	waitUntil(t, func() bool {
		b.produceAt(t, &kgo.Record{Topic: topic, Key: []byte("other"), Value: []byte("x")}) // closes the segment before it
		for _, r := range b.first(t, topic) {
			gone = r.Offset > 0
		}
		return gone
	})
	if !gone {
		t.Fatal("the broker did not compact")
	}
}

// first reads the first record of a topic.
func (b *fixture) first(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	from, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	return from.PollRecords(limited(t), 1).Records()
}
