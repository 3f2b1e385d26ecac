package kafka

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// newRecords returns memory for n records, each with its receipt. The caller holds mu.
func (d *Driver) newRecords(n int) []broker.Record {
	for k, one := range d.freeRecords {
		if cap(one) >= n {
			last := len(d.freeRecords) - 1
			d.freeRecords[k], d.freeRecords[last] = d.freeRecords[last], nil
			d.freeRecords = d.freeRecords[:last]
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
		at.partition, r.Key, r.Value, r.Headers = nil, nil, nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cap(records) > recordSliceLength {
		return
	}
	if len(d.freeRecords) < recordSlicesKept {
		d.freeRecords = append(d.freeRecords, records[:0])
		return
	}
	smallest := 0
	for k := range d.freeRecords {
		if cap(d.freeRecords[k]) < cap(d.freeRecords[smallest]) {
			smallest = k
		}
	}
	if cap(records) > cap(d.freeRecords[smallest]) {
		d.freeRecords[smallest] = records[:0]
	}
}

// Limits of the memory that is kept for later.
const (
	recordSlicesKept  = 4
	recordSliceLength = nixie.MaxBatch // records
)
