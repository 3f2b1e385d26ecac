package broker

import "hash/maphash"

// Order says which records do not pass each other.
type ProcessingOrder string

// The orders of a source. What is retried in place holds up those behind it; what
// waits on a stage or in a store is passed. Only with OrderStrict nothing with a key
// ever leaves to wait there: it stays in hand, as do those of its key behind it, and
// counts among those in hand for as long.
const (
	ProcessUnordered   ProcessingOrder = "none"      // all may run at once
	ProcessByKey       ProcessingOrder = "key"       // those of one key and partition run one by one; those without a key at once
	ProcessByPartition ProcessingOrder = "partition" // those of one partition run one by one
	ProcessStrict      ProcessingOrder = "strict"    // as by key, and no retry is passed either
)

// Orders lists every order once.
func ProcessingOrders() []ProcessingOrder {
	return []ProcessingOrder{ProcessUnordered, ProcessByKey, ProcessByPartition, ProcessStrict}
}

// lanes keep order: of the items of one lane one at a time is handed out. Keys
// share lanes by chance, which costs a little speed and never order.
type lanes struct {
	order ProcessingOrder
	seed  maphash.Seed
	all   [laneCount]lane
}

const laneCount = 4096

// lane is the items that wait for the one that is out.
type lane struct {
	busy  bool
	queue []*item
}

// enter puts an item into its lane and reports whether it may go at once.
func (l *lanes) enter(i *item) bool {
	i.lane = l.of(i.record)
	if i.lane == nil {
		return true
	}
	if i.lane.busy {
		i.lane.queue = append(i.lane.queue, i)
		return false
	}
	i.lane.busy = true
	return true
}

// leave takes an item out of its lane and returns the one that may go now.
func (l *lanes) leave(i *item) *item {
	if i.lane == nil {
		return nil
	}
	if len(i.lane.queue) == 0 {
		i.lane.busy, i.lane.queue = false, nil
		return nil
	}
	next := i.lane.queue[0]
	i.lane.queue[0] = nil
	i.lane.queue = i.lane.queue[1:]
	return next
}

func (l *lanes) of(r *Record) *lane {
	sum := uint64(r.Partition)
	switch {
	case l.order == ProcessByPartition:
	case (l.order == ProcessByKey || l.order == ProcessStrict) && r.Key != nil:
		sum += maphash.Bytes(l.seed, r.Key)
	default:
		return nil
	}
	sum += maphash.String(l.seed, r.Channel)
	return &l.all[sum%laneCount]
}
