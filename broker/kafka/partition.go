package kafka

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// topicPartition names a partition.
type topicPartition struct {
	topic     string
	partition int32
}

// partition holds the state of a partition from its assignment to its loss. Records that were
// handed out before belong to an older value, and are refused.
type partition struct {
	topicPartition
	prefix
	epoch   int64
	seed    [2]uint64     // of the IDs of its records
	cluster string        // ID of it; empty: unknown
	stage   stage         // zero if the topic is no stage
	held    []*kgo.Record // fetched, and not handed out
	dueAt   time.Time     // when the first held record may be handed out
	paused  bool

	leaving bool          // hand out nothing more
	idle    chan struct{} // closed when nothing is in hand, while it is leaving
	lost    bool

	known           bool        // next is known
	suspects                    // as the holders before left them
	end             int64       // of the topic when this member first fetched; no suspect lies behind it
	holderCommitted bool        // the group knows which records to suspect if this member vanishes
	progressed      bool        // this member finished a record
	committed       commitPoint // what the group has
	hasCommitted    bool        // the group has something
}

// commitPoint holds one commit of a partition.
type commitPoint struct {
	offset int64
	epoch  int32
	suspects
}

func newPartition(at topicPartition, epoch int64) *partition {
	sum := sha256.Sum256(fmt.Appendf(nil, "kafka\x00%s\x00%d", at.topic, at.partition))
	return &partition{
		topicPartition: at, epoch: epoch & epochMask,
		seed: [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])},
	}
}

// available returns how many more records may be handed out. At most most records may be after the
// last committed offset. Of suspects no more than one window is out, counted from the committed
// offset, so that the one to blame is among them.
func (p *partition) available(most, parallel int) int {
	if p.suspected() {
		most = min(most, p.window(parallel)-int(p.next-p.committed.offset))
	}
	return most - p.len()
}

// finish marks a record as finished and reports whether the prefix grew. Suspects that are finished
// have survived.
func (p *partition) finish(position int64) bool {
	before := p.first
	if !p.prefix.finish(position) {
		return false
	}
	p.progressed, p.stops = true, 0
	if !p.suspected() {
		return true
	}
	if p.count -= int(p.first - before); p.count <= 0 || p.next >= p.end {
		p.suspects = suspects{}
	}
	if p.len() == 0 || !p.suspected() {
		p.holderCommitted = false // if this member vanishes now, no suspect is to blame
	}
	return true
}

// commitPoint returns what to commit now: it names the records to suspect if this member vanishes.
func (p *partition) commitPoint(parallel int, told bool) commitPoint {
	if p.holderCommitted {
		return commitPoint{p.next, p.leaderEpoch, p.afterHolder(parallel, told)}
	}
	return p.cleanCommitPoint()
}

// cleanCommitPoint returns what to commit when the partition is given up in good order: this member
// does not count as a holder that vanished.
func (p *partition) cleanCommitPoint() commitPoint {
	return commitPoint{p.next, p.leaderEpoch, p.suspects}
}

// receipt finds a record that was handed out.
type receipt struct {
	partition *partition
	position  int64
}

// record fills a broker.Record to hand out.
func (p *partition) record(r *kgo.Record, to *broker.Record, headers *headerPool) {
	at := to.Receipt.(*receipt)
	p.copy(r, to, headers)
	to.Receipt = at
	if p.len() < p.count {
		to.Crashes, to.Alone = p.crashes, p.alone > 1
	}
	at.partition, at.position = p, p.add(r.Offset, r.LeaderEpoch)
}

// copy fills a broker.Record from one of the client.
func (p *partition) copy(r *kgo.Record, to *broker.Record, headers *headerPool) {
	to.Channel, to.Source, to.Partition, to.Offset, to.Key, to.Value, to.Headers, to.Timestamp = r.Topic, p.stage.source, r.Partition,
		r.Offset, r.Key, r.Value, nil, r.Timestamp
	to.ID, to.Epoch, to.Crashes, to.Alone, to.Server = p.id(r), p.epoch, 0, false, p.cluster
	if len(r.Headers) > 0 {
		to.Headers = headers.of(len(r.Headers))
		for i, h := range r.Headers {
			to.Headers[i] = broker.RecordHeader{Name: h.Key, Value: h.Value}
		}
	}
}

// headerPool allocates the headers of several records at once.
type headerPool []broker.RecordHeader

const headerPoolSize = 512

func (s *headerPool) of(n int) []broker.RecordHeader {
	if len(*s) < n {
		*s = make([]broker.RecordHeader, max(n, headerPoolSize))
	}
	list := (*s)[:n:n]
	*s = (*s)[n:]
	return list
}

// id derives the ID of a record from its partition and offset, which no other record shares. Like
// all IDs it is a UUID of version 7, with the time of the record.
func (p *partition) id(r *kgo.Record) (id nixie.ID) {
	at := uint64(max(r.Timestamp.UnixMilli(), 1))
	high, low := mix(p.seed[0]^uint64(r.Offset)), mix(p.seed[1]+uint64(r.Offset))
	binary.BigEndian.PutUint64(id[:8], at<<16|7<<12|high&0xfff)
	binary.BigEndian.PutUint64(id[8:], low&(1<<62-1)|2<<62)
	return id
}

// mix scatters the bits of a number; distinct numbers stay distinct.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// signalIdle wakes the call of revoked that waits until nothing is in hand.
func (p *partition) signalIdle() {
	if p.idle != nil && p.open == 0 {
		close(p.idle)
		p.idle = nil
	}
}

// suspects are the first records after a committed offset, one of which may have killed its
// holders. The group keeps them as metadata of the commit. A holder writes there which records to
// suspect if it vanishes.
type suspects struct {
	crashes int // holders in a row that vanished with them
	count   int // number of records; 0: none is suspected
	alone   int // how many of the last holders had only one record in hand
	stops   int // holders that vanished after they were told to stop, since a record was finished
}

func (s suspects) suspected() bool { return s.count > 0 }

// window returns how many suspects run together.
func (s suspects) window(parallel int) int { return min(s.count, lease.GroupSize(parallel, s.crashes)) }

// afterHolder returns the suspects if this holder vanishes too. It had one window of them in hand,
// or without suspects about the records of one receive. One that was told to stop is no reason for
// suspicion, up to [lease.MaxStops] times.
func (s suspects) afterHolder(parallel int, told bool) suspects {
	if told && s.stops < lease.MaxStops {
		s.stops++
		return s
	}
	if !s.suspected() {
		return suspects{crashes: 1, count: nixie.MaxBatch, stops: s.stops}
	}
	next := suspects{crashes: min(s.crashes+1, maxSuspects), count: s.window(parallel), stops: s.stops}
	if next.count == 1 {
		next.alone = min(s.alone+1, maxSuspects)
	}
	return next
}

// maxSuspects limits what is read from metadata, which another program may have written.
const maxSuspects = 1_000_000

// The formats of metadata: the second one goes on behind the first, if there were stops.
const (
	suspectsFormat = "nixie crashes=%d of=%d alone=%d"
	stopsFormat    = suspectsFormat + " stops=%d"
)

func (s suspects) metadata() string {
	switch {
	case s.stops > 0:
		return fmt.Sprintf(stopsFormat, s.crashes, s.count, s.alone, s.stops)
	case s.suspected():
		return fmt.Sprintf(suspectsFormat, s.crashes, s.count, s.alone)
	}
	return ""
}

// readSuspects reads what metadata wrote. It returns none for metadata of other programs.
func readSuspects(metadata *string) (s suspects) {
	if metadata == nil {
		return s
	}
	n, _ := fmt.Sscanf(*metadata, stopsFormat, &s.crashes, &s.count, &s.alone, &s.stops)
	sane := min(s.crashes, s.count, s.alone, s.stops) >= 0 && max(s.crashes, s.count, s.alone, s.stops) <= maxSuspects
	if n < 3 || !sane || (s.crashes > 0) != (s.count > 0) || !s.suspected() && s.stops == 0 {
		return suspects{}
	}
	return s
}
