package kafka

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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

	known    bool  // next is known
	suspects       // those that vanished with the holders before
	end      int64 // of the topic when the first of those came; none lies beyond
	counted  bool  // the group knows that this holder may vanish with some
	moved    bool  // it finished something
	kept     mark  // what the group has
	keptAny  bool  // it has something
}

// mark is what is committed of a partition.
type mark struct {
	offset int64
	epoch  int32
	suspects
}

func newPartition(at place, epoch int64) *partition {
	sum := sha256.Sum256(fmt.Appendf(nil, "kafka\x00%s\x00%d", at.topic, at.part))
	return &partition{
		place: at, epoch: epoch & epochMask,
		seed: [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])},
	}
}

// spare is how many more records may be handed out where most may be ahead of what is
// committed. Of suspects no more are out than run together, from the committed offset on:
// one of those is to blame if this holder vanishes.
func (p *partition) spare(most, parallel int) int {
	if p.suspected() {
		most = min(most, p.window(parallel)-int(p.next-p.kept.offset))
	}
	return most - p.len()
}

// finish marks a record as done with, and reports whether the prefix moved. Suspects
// that are done with have survived.
func (p *partition) finish(position int64) bool {
	before := p.first
	if !p.prefix.finish(position) {
		return false
	}
	p.moved = true
	if !p.suspected() {
		return true
	}
	if p.of -= int(p.first - before); p.of <= 0 || p.next >= p.end {
		p.suspects = suspects{}
	}
	if p.len() == 0 || !p.suspected() {
		p.counted = false // if it vanishes now, it takes no suspect along
	}
	return true
}

// mark is what is to be committed now: whom to suspect if this holder vanishes.
func (p *partition) mark(parallel int) mark {
	if p.counted {
		return mark{p.next, p.leader, p.vanish(parallel)}
	}
	return p.farewell()
}

// farewell is what is to be committed when the partition is given up in good order:
// that this one had it does not count.
func (p *partition) farewell() mark { return mark{p.next, p.leader, p.suspects} }

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
	if p.len() < p.of {
		to.Crashes, to.Alone = p.crashes, p.alone > 1
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
			to.Headers[i] = broker.RecordHeader{Name: h.Key, Value: h.Value}
		}
	}
}

// slab is room for the headers of several records.
type slab []broker.RecordHeader

const slabRoom = 512

func (s *slab) of(n int) []broker.RecordHeader {
	if len(*s) < n {
		*s = make([]broker.RecordHeader, max(n, slabRoom))
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
