package broker

import (
	"hash/maphash"
	"iter"
)

// ProcessingOrder tells which records may not pass each other.
type ProcessingOrder string

// The orders of a source. A retry that waits in hand holds up the records behind it; later records
// pass one that waits on a stage or in a store. With ProcessStrict a record with a key never leaves
// the hand to wait. It counts against the limit of records in hand for that time, as do the records
// of its key behind it.
const (
	ProcessUnordered   ProcessingOrder = "none"      // all records may run at once
	ProcessByKey       ProcessingOrder = "key"       // one record of a key and partition at a time; without a key at once
	ProcessByPartition ProcessingOrder = "partition" // one record of a partition at a time
	ProcessStrict      ProcessingOrder = "strict"    // as ProcessByKey, and no record passes a retry of its key
)

// ProcessingOrders lists every order once.
func ProcessingOrders() []ProcessingOrder {
	return []ProcessingOrder{ProcessUnordered, ProcessByKey, ProcessByPartition, ProcessStrict}
}

// serialQueues keep order: the source delivers one item of a serial queue at a time. A queue is one
// row of the table as a rule. A queue whose row another one uses lies among the others, so that no
// key ever waits for another.
type serialQueues struct {
	order  ProcessingOrder
	seed   maphash.Seed
	table  [serialQueueCount]serialQueue
	others map[uint64]*serialQueue // by hash
}

const serialQueueCount = 4096

// serialQueue holds the items behind the one that may run.
type serialQueue struct {
	hash   uint64 // of what its items have in common
	busy   bool
	behind []*item
}

// enter puts an item into its serial queue and reports whether it may run at once.
func (q *serialQueues) enter(i *item) bool {
	i.serial = q.of(i.record)
	if i.serial == nil {
		return true
	}
	if i.serial.busy {
		i.serial.behind = append(i.serial.behind, i)
		return false
	}
	i.serial.busy = true
	return true
}

// leave takes an item out of its serial queue and returns the one that may run next.
func (q *serialQueues) leave(i *item) *item {
	if i.serial == nil {
		return nil
	}
	if len(i.serial.behind) == 0 {
		i.serial.busy, i.serial.behind = false, nil
		if q.others[i.serial.hash] == i.serial {
			delete(q.others, i.serial.hash)
		}
		return nil
	}
	next := i.serial.behind[0]
	i.serial.behind[0] = nil
	i.serial.behind = i.serial.behind[1:]
	return next
}

// of returns the serial queue of a record; nil if nothing has to wait for it.
func (q *serialQueues) of(r *Record) *serialQueue {
	hash := uint64(r.Partition)
	switch {
	case q.order == ProcessByPartition:
	case (q.order == ProcessByKey || q.order == ProcessStrict) && r.Key != nil:
		hash += maphash.Bytes(q.seed, r.Key)
	default:
		return nil
	}
	hash += maphash.String(q.seed, r.Channel)
	if other := q.others[hash]; other != nil {
		return other
	}
	row := &q.table[hash%serialQueueCount]
	if row.busy && row.hash != hash {
		row = &serialQueue{}
		if q.others == nil {
			q.others = map[uint64]*serialQueue{}
		}
		q.others[hash] = row
	}
	row.hash = hash
	return row
}

// all returns every serial queue once.
func (q *serialQueues) all() iter.Seq[*serialQueue] {
	return func(yield func(*serialQueue) bool) {
		for n := range q.table {
			if !yield(&q.table[n]) {
				return
			}
		}
		for _, other := range q.others {
			if !yield(other) {
				return
			}
		}
	}
}
