package kafka

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// room is memory for n records that are handed out together, each with its receipt.
// The mutex is held.
func (d *Driver) room(n int) []broker.Record {
	for k, one := range d.rooms {
		if cap(one) >= n {
			last := len(d.rooms) - 1
			d.rooms[k], d.rooms[last] = d.rooms[last], nil
			d.rooms = d.rooms[:last]
			return one
		}
	}
	all, receipts := make([]broker.Record, n), make([]receipt, n)
	for k := range all {
		all[k].Receipt = &receipts[k]
	}
	return all[:0]
}

// Recycle implements [broker.Recycler].
func (d *Driver) Recycle(records []broker.Record) {
	for k := range records {
		r := &records[k]
		at := r.Receipt.(*receipt)
		at.part, r.Key, r.Value, r.Headers = nil, nil, nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cap(records) > roomLength {
		return
	}
	if len(d.rooms) < roomsKept {
		d.rooms = append(d.rooms, records[:0])
		return
	}
	smallest := 0
	for k := range d.rooms {
		if cap(d.rooms[k]) < cap(d.rooms[smallest]) {
			smallest = k
		}
	}
	if cap(records) > cap(d.rooms[smallest]) {
		d.rooms[smallest] = records[:0]
	}
}

// Bounds of the memory that is kept for later.
const (
	roomsKept  = 4
	roomLength = nixie.MaxBatch // records
)
