package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/nixie-go/nixie/broker"
)

// groupTrace watches the members of a group. It records what each was handed, what became of it,
// and what it committed. It stores what must never happen as a fault.
type groupTrace struct {
	*fixture
	*ledger
	names map[kadm.TopicID]string

	mu        sync.Mutex
	handed    []event
	commits   []event // that the group accepted
	acked     map[position]bool
	retried   map[position]bool   // by the positions where they came from
	letters   map[position]string // IDs, by the positions where the records came from
	thrownOut map[string]bool     // members that were told so
	faults    []string
}

// position names one record.
type position struct {
	topicPartition
	offset int64
}

// event is a record that a member was handed, or an offset that it committed.
type event struct {
	position
	member string
	epoch  int64 // generation of the group
}

func newGroupTrace(t testing.TB, b *fixture) *groupTrace {
	t.Helper()
	p := &groupTrace{fixture: b, ledger: newLedger(b), names: map[kadm.TopicID]string{}, acked: map[position]bool{},
		retried: map[position]bool{}, letters: map[position]string{}, thrownOut: map[string]bool{}}
	topics, err := kadm.NewClient(b.client).ListTopics(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		p.names[topic.ID] = topic.Topic
	}
	return p
}

func (p *groupTrace) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// tracedDriver is a driver that a groupTrace watches.
type tracedDriver struct {
	broker.Driver
	trace *groupTrace
	gate  *gate
	name  string
}

func (o *tracedDriver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	got, err := o.Driver.Receive(ctx, want)
	o.trace.mu.Lock()
	for i := range got {
		o.trace.handed = append(o.trace.handed, event{at(&got[i]), o.name, got[i].Epoch})
	}
	o.trace.mu.Unlock()
	if len(got) > 0 {
		o.gate.pass(handedOut)
	}
	return got, err
}

// Publish records what was confirmed, and may wait at the gate before the member learns of it.
func (o *tracedDriver) Publish(ctx context.Context, list []broker.Publication) func() []error {
	answers := o.Driver.Publish(ctx, list)
	return func() []error {
		errs := answers()
		for i, err := range errs {
			if err == nil {
				o.trace.published(&list[i])
			}
		}
		if list[0].Channel == o.trace.fixture.letters {
			o.gate.pass(letterThere)
		} else {
			o.gate.pass(retryThere)
		}
		return errs
	}
}

// Ack records what counts as done from here on, and checks that it is.
func (o *tracedDriver) Ack(ctx context.Context, records []*broker.Record) []error {
	for _, r := range records {
		o.trace.ack(r)
	}
	return o.Driver.Ack(ctx, records)
}

func at(r *broker.Record) position { return position{topicPartition{r.Channel, r.Partition}, r.Offset} }

// first returns where a record came from first.
func (p *groupTrace) first(channel string, here position, headers []broker.RecordHeader) position {
	if channel == p.source {
		return here
	}
	r := broker.Record{Headers: headers}
	var s position
	s.topic = p.source
	if _, err := fmt.Sscan(header(&r, broker.HeaderPartition)+" "+header(&r, broker.HeaderOffset), &s.partition, &s.offset); err != nil {
		p.fault("a record of %s does not say where it came from: %v", channel, err)
	}
	return s
}

func (p *groupTrace) published(r *broker.Publication) {
	from := p.first(r.Channel, position{}, r.Headers)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Channel != p.fixture.letters {
		p.retried[from] = true
		return
	}
	id := header(&broker.Record{Headers: r.Headers}, broker.HeaderLetterID)
	if before := p.letters[from]; before != "" && before != id {
		p.faults = append(p.faults, fmt.Sprintf("%v has the letters %s and %s", from, before, id))
	}
	p.letters[from] = id
}

func (p *groupTrace) ack(r *broker.Record) {
	from := p.first(r.Channel, at(r), r.Headers)
	handled := p.times(from) > 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if !handled && p.letters[from] == "" && !(r.Channel == p.source && p.retried[from]) {
		p.faults = append(p.faults, fmt.Sprintf("%v was acknowledged, and neither handled nor a letter nor on a stage", from))
	}
	p.acked[at(r)] = true
}

// times returns how often a record was handled.
func (p *groupTrace) times(s position) int {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.done[s.topicPartition][s.offset]
}

// watch checks commits. A request may only name records that are done, and its member must believe
// that it is one. Answers tell what the group accepted.
func (p *groupTrace) watch(e *exchange) {
	asked, answer := e.commit()
	if asked == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer == nil && p.thrownOut[asked.MemberID] {
		p.faults = append(p.faults, asked.MemberID+" commits, and knows that it is out")
	}
	for i, topic := range asked.Topics {
		for k, part := range topic.Partitions {
			s := position{topicPartition{cmp.Or(topic.Topic, p.names[topic.TopicID]), part.Partition}, part.Offset}
			if answer == nil {
				p.finished(s)
				continue
			}
			switch err := kerr.ErrorForCode(answer.Topics[i].Partitions[k].ErrorCode); {
			case err == nil:
				p.commits = append(p.commits, event{s, asked.MemberID, int64(asked.Generation)})
			case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration):
				p.thrownOut[asked.MemberID] = true
			}
		}
	}
}

// finished checks that all records before an offset were acknowledged. The caller holds mu.
func (p *groupTrace) finished(end position) {
	for offset := range end.offset {
		if !p.acked[position{end.topicPartition, offset}] {
			p.faults = append(p.faults, fmt.Sprintf("%v is to be committed, and %d was not acknowledged", end, offset))
			return
		}
	}
}

// committedRecords returns how many records of the source the group has committed.
func (p *groupTrace) committedRecords() (all int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := map[topicPartition]int64{}
	for _, c := range p.commits {
		if c.topic == p.source {
			most[c.topicPartition] = max(most[c.topicPartition], c.offset)
		}
	}
	for _, n := range most {
		all += n
	}
	return all
}

// check reports all faults. A commit must not go back, or come from a member without the partition.
// No member may get a record after its commit, or twice.
func (p *groupTrace) check(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wrong := range p.faults {
		t.Error(wrong)
	}
	byEpoch := func(a, b event) int { return cmp.Compare(a.epoch, b.epoch) }
	slices.SortStableFunc(p.commits, byEpoch)
	last := map[topicPartition]event{}
	for _, c := range p.commits {
		if before, any := last[c.topicPartition]; any &&
			(before.offset > c.offset || before.epoch == c.epoch && before.member != c.member) {
			t.Errorf("%+v was committed after %+v", c, before)
		}
		last[c.topicPartition] = c
	}
	seen := map[event]bool{}
	for _, h := range p.handed {
		if seen[h] {
			t.Errorf("%+v was handed out twice", h)
		}
		seen[h] = true
		for _, c := range p.commits {
			if c.topicPartition == h.topicPartition && c.epoch < h.epoch && c.offset > h.offset {
				t.Errorf("%+v was handed out after %+v was committed", h, c)
			}
		}
	}
}

// repeated counts the records that were handled more than once.
func (p *groupTrace) repeated() (n int) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	for _, offsets := range p.ledger.done {
		for _, times := range offsets {
			if times > 1 {
				n++
			}
		}
	}
	return n
}
