package broker

import "hash/maphash"

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

// serialQueues keep order: the source delivers one item of a serial queue at a time. Several keys
// may hash to the same queue, which costs a little speed and never breaks order.
type serialQueues struct {
	order ProcessingOrder
	seed  maphash.Seed
	all   [serialQueueCount]serialQueue
}

const serialQueueCount = 4096

// serialQueue holds the items behind the one that may run.
type serialQueue struct {
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
		return nil
	}
	next := i.serial.behind[0]
	i.serial.behind[0] = nil
	i.serial.behind = i.serial.behind[1:]
	return next
}

func (q *serialQueues) of(r *Record) *serialQueue {
	sum := uint64(r.Partition)
	switch {
	case q.order == ProcessByPartition:
	case (q.order == ProcessByKey || q.order == ProcessStrict) && r.Key != nil:
		sum += maphash.Bytes(q.seed, r.Key)
	default:
		return nil
	}
	sum += maphash.String(q.seed, r.Channel)
	return &q.all[sum%serialQueueCount]
}
