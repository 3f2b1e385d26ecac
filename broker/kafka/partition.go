package kafka

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// place names a partition.
type place struct {
	topic string
	part  int32
}

// partition is one that this member has, from its assignment to its loss. Whatever
// was handed out before belongs to another partition value, and is refused.
type partition struct {
	place
	prefix
	epoch  int64
	seed   [2]uint64     // of the IDs of its records
	stage  stage         // that it is of; zero for others
	held   []*kgo.Record // fetched, and not to be handed out yet
	due    time.Time     // when the first of those may be handed out
	paused bool

	leaving bool          // nothing more of it is to be begun
	calm    chan struct{} // closed when nothing is in hand, once it is leaving
	lost    bool

	known   bool  // next is known
	before  int   // holders that finished nothing, before this one
	counted bool  // this one is counted among them
	moved   bool  // it finished something
	from    int64 // the offset that it began at
	kept    mark  // what the group has
	keptAny bool  // it has something
}

// mark is what is committed of a partition.
type mark struct {
	offset int64
	epoch  int32
	starts int
}

func newPartition(at place, epoch int64) *partition {
	sum := sha256.Sum256(fmt.Appendf(nil, "kafka\x00%s\x00%d", at.topic, at.part))
	return &partition{
		place: at, epoch: epoch & epochMask,
		seed: [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])},
	}
}

// spare is how many more records may be handed out where most may be ahead of what is
// committed. After a holder that vanished no more of them are out than this one has
// committed, and one: if one of them makes it vanish as well, half of those between
// here and there are done with, so that few holders go until that one is the first.
func (p *partition) spare(most int) int {
	if p.before > 0 {
		most = min(most, int(p.kept.offset-p.from)+1-int(p.next-p.kept.offset))
	}
	return most - p.len()
}

// trusted is how many records a holder commits after one that vanished until it is
// like any other.
const trusted = 4_096

// mark is what is to be committed now. The count of holders says that this one has
// something in hand.
func (p *partition) mark() mark {
	m := mark{offset: p.next, epoch: p.prefix.leader}
	switch {
	case !p.counted && !p.moved:
		m.starts = p.before
	case p.counted && !p.moved:
		m.starts = p.before + 1
	case p.counted:
		m.starts = 1
	}
	return m
}

// farewell is what is to be committed when the partition is given up in good order:
// that this one had it does not count.
func (p *partition) farewell() mark {
	m := mark{offset: p.next, epoch: p.prefix.leader}
	if !p.moved {
		m.starts = p.before
	}
	return m
}

// started is how the group keeps the count of holders.
const started = "nixie starts="

func (m mark) metadata() string {
	if m.starts == 0 {
		return ""
	}
	return started + strconv.Itoa(m.starts)
}

// startsIn reads what metadata wrote; that of others says nothing.
func startsIn(metadata *string) int {
	if metadata == nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(*metadata, started))
	if err != nil || n < 0 || !strings.HasPrefix(*metadata, started) {
		return 0
	}
	return min(n, maxStarts)
}

const maxStarts = 1_000_000

// receipt is where a record that is handed out is found.
type receipt struct {
	part     *partition
	position int64
}

// record makes a record of the contract that is handed out.
func (p *partition) record(r *kgo.Record, to *broker.Record, headers *slab) {
	at := to.Receipt.(*receipt)
	p.copy(r, to, headers)
	to.Receipt = at
	if p.before > 1 && p.kept.offset == p.from && p.open == 0 {
		to.Crashes, to.Alone = p.before, true // the holders of this one alone, and the one that had others as well
	}
	at.part, at.position = p, p.add(r.Offset, r.LeaderEpoch)
}

// copy makes a record of the contract.
func (p *partition) copy(r *kgo.Record, to *broker.Record, headers *slab) {
	to.Channel, to.Source, to.Partition, to.Offset, to.Key, to.Value, to.Headers, to.Timestamp = r.Topic, p.stage.source, r.Partition, r.Offset, r.Key, r.Value, nil, r.Timestamp
	to.ID, to.Epoch, to.Crashes, to.Alone = p.id(r), p.epoch, 0, false
	if len(r.Headers) > 0 {
		to.Headers = headers.of(len(r.Headers))
		for i, h := range r.Headers {
			to.Headers[i] = broker.Header{Name: h.Key, Value: h.Value}
		}
	}
}

// slab is room for the headers of several records.
type slab []broker.Header

const slabRoom = 512

func (s *slab) of(n int) []broker.Header {
	if len(*s) < n {
		*s = make([]broker.Header, max(n, slabRoom))
	}
	list := (*s)[:n:n]
	*s = (*s)[n:]
	return list
}

// id is the same each time, and like all IDs a UUID of version 7: its time is that
// of the record. Two offsets of a partition never have the same.
func (p *partition) id(r *kgo.Record) (id nixie.ID) {
	at := uint64(max(r.Timestamp.UnixMilli(), 1))
	high, low := mix(p.seed[0]^uint64(r.Offset)), mix(p.seed[1]+uint64(r.Offset))
	binary.BigEndian.PutUint64(id[:8], at<<16|7<<12|high&0xfff)
	binary.BigEndian.PutUint64(id[8:], low&(1<<62-1)|2<<62)
	return id
}

// mix scatters the bits of a number, no two numbers to the same.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// quiet tells whoever waits for it that nothing is in hand any more.
func (p *partition) quiet() {
	if p.calm != nil && p.open == 0 {
		close(p.calm)
		p.calm = nil
	}
}
