package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/nixie-go/nixie/broker"
)

// play is several members of a group, and notes what each was handed, what became of it,
// and what it told the group. What must never be is noted as wrong.
type play struct {
	*fixture
	*ledger
	names map[kadm.TopicID]string

	mu      sync.Mutex
	handed  []told
	taken   []told // what the group has taken as committed
	acked   map[spot]bool
	retried map[spot]bool   // by where they came from
	letters map[spot]string // the same, with their IDs
	out     map[string]bool // members that were told that they are none any more
	wrong   []string
}

// spot is one record.
type spot struct {
	topicPartition
	offset int64
}

// told is what a member was told, or told others, about a partition.
type told struct {
	spot
	member string
	epoch  int64 // generation of the group
}

func newPlay(t testing.TB, b *fixture) *play {
	t.Helper()
	p := &play{fixture: b, ledger: newLedger(b), names: map[kadm.TopicID]string{}, acked: map[spot]bool{}, retried: map[spot]bool{}, letters: map[spot]string{}, out: map[string]bool{}}
	topics, err := kadm.NewClient(b.client).ListTopics(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		p.names[topic.ID] = topic.Topic
	}
	return p
}

func (p *play) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// observed is a driver of the play.
type observed struct {
	broker.Driver
	play *play
	gate *gate
	name string
}

func (o *observed) Receive(ctx context.Context, most int, wait time.Duration) ([]broker.Record, error) {
	got, err := o.Driver.Receive(ctx, most, wait)
	o.play.mu.Lock()
	for i := range got {
		o.play.handed = append(o.play.handed, told{at(&got[i]), o.name, got[i].Epoch})
	}
	o.play.mu.Unlock()
	if len(got) > 0 {
		o.gate.pass(handedOut)
	}
	return got, err
}

// Publish notes what was confirmed, and is held before anybody hears of it.
func (o *observed) Publish(ctx context.Context, list []broker.Publication) func() []error {
	answers := o.Driver.Publish(ctx, list)
	return func() []error {
		errs := answers()
		for i, err := range errs {
			if err == nil {
				o.play.published(&list[i])
			}
		}
		if list[0].Channel == o.play.fixture.letters {
			o.gate.pass(letterThere)
		} else {
			o.gate.pass(retryThere)
		}
		return errs
	}
}

// Ack notes what counts as done with from here on, which it has to be.
func (o *observed) Ack(ctx context.Context, records []*broker.Record) []error {
	for _, r := range records {
		o.play.ack(r)
	}
	return o.Driver.Ack(ctx, records)
}

func at(r *broker.Record) spot { return spot{topicPartition{r.Channel, r.Partition}, r.Offset} }

// first is where a record came from first.
func (p *play) first(channel string, here spot, headers []broker.RecordHeader) spot {
	if channel == p.source {
		return here
	}
	r := broker.Record{Headers: headers}
	var s spot
	s.topic = p.source
	if _, err := fmt.Sscan(header(&r, broker.HeaderPartition)+" "+header(&r, broker.HeaderOffset), &s.partition, &s.offset); err != nil {
		p.fault("a record of %s does not say where it came from: %v", channel, err)
	}
	return s
}

func (p *play) published(r *broker.Publication) {
	from := p.first(r.Channel, spot{}, r.Headers)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Channel != p.fixture.letters {
		p.retried[from] = true
		return
	}
	id := header(&broker.Record{Headers: r.Headers}, broker.HeaderLetterID)
	if before := p.letters[from]; before != "" && before != id {
		p.wrong = append(p.wrong, fmt.Sprintf("%v has the letters %s and %s", from, before, id))
	}
	p.letters[from] = id
}

func (p *play) ack(r *broker.Record) {
	from := p.first(r.Channel, at(r), r.Headers)
	handled := p.times(from) > 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if !handled && p.letters[from] == "" && !(r.Channel == p.source && p.retried[from]) {
		p.wrong = append(p.wrong, fmt.Sprintf("%v was acknowledged, and is in no place", from))
	}
	p.acked[at(r)] = true
}

// times is how often a record was handled.
func (p *play) times(s spot) int {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return p.ledger.done[s.topicPartition][s.offset]
}

// watch looks at commits: on their way, when all before them has to be done with and the
// member has to believe that it is one, and when they were answered.
func (p *play) watch(e *exchange) {
	asked, answer := e.commit()
	if asked == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer == nil && p.out[asked.MemberID] {
		p.wrong = append(p.wrong, asked.MemberID+" commits, and knows that it is out")
	}
	for i, topic := range asked.Topics {
		for k, part := range topic.Partitions {
			s := spot{topicPartition{cmp.Or(topic.Topic, p.names[topic.TopicID]), part.Partition}, part.Offset}
			if answer == nil {
				p.finished(s)
				continue
			}
			switch err := kerr.ErrorForCode(answer.Topics[i].Partitions[k].ErrorCode); {
			case err == nil:
				p.taken = append(p.taken, told{s, asked.MemberID, int64(asked.Generation)})
			case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration):
				p.out[asked.MemberID] = true
			}
		}
	}
}

// finished checks that all before an offset was acknowledged. The play's mutex is held.
func (p *play) finished(end spot) {
	for offset := range end.offset {
		if !p.acked[spot{end.topicPartition, offset}] {
			p.wrong = append(p.wrong, fmt.Sprintf("%v is to be committed, and %d was not acknowledged", end, offset))
			return
		}
	}
}

// committed is how much of all partitions the group has taken.
func (p *play) committed() (all int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := map[topicPartition]int64{}
	for _, c := range p.taken {
		if c.topic == p.source {
			most[c.topicPartition] = max(most[c.topicPartition], c.offset)
		}
	}
	for _, n := range most {
		all += n
	}
	return all
}

// check says what went wrong: commits that went back, or of somebody who did not have
// the partition, and records that were handed out again after they were committed, or
// twice to one who had them.
func (p *play) check(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wrong := range p.wrong {
		t.Error(wrong)
	}
	byEpoch := func(a, b told) int { return cmp.Compare(a.epoch, b.epoch) }
	slices.SortStableFunc(p.taken, byEpoch)
	last := map[topicPartition]told{}
	for _, c := range p.taken {
		if before, any := last[c.topicPartition]; any && (before.offset > c.offset || before.epoch == c.epoch && before.member != c.member) {
			t.Errorf("%+v was committed after %+v", c, before)
		}
		last[c.topicPartition] = c
	}
	seen := map[told]bool{}
	for _, h := range p.handed {
		if seen[h] {
			t.Errorf("%+v was handed out twice", h)
		}
		seen[h] = true
		for _, c := range p.taken {
			if c.topicPartition == h.topicPartition && c.epoch < h.epoch && c.offset > h.offset {
				t.Errorf("%+v was handed out after %+v was committed", h, c)
			}
		}
	}
}

// again is how many records were handled more than once.
func (p *play) again() (n int) {
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
