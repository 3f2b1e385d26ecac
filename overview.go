package nixie

import "time"

// Overview has the numbers of a store at a moment. An office makes it, and package telemetry shows
// it.
type Overview struct {
	At       time.Time
	Queues   []QueueNumbers
	Workers  int64 // processes that hold leases
	Suspects int64 // messages that may be poison; at most 1,000 are counted
}

// QueueNumbers has the numbers of a queue.
type QueueNumbers struct {
	Name                              string
	Ready, Blocked, Scheduled, Leased int64
	OldestReady                       time.Time        // since when the longest ready message is due; zero without one
	Letters                           map[Status]int64 // by status
	OldestLetter                      time.Time        // death of the oldest letter that waits for an operator
	BlockedStreams                    int64            // streams behind a dead message; at most 1,000 are counted
}

// Waiting lists the statuses of letters that wait for an operator.
func Waiting() []Status { return []Status{StatusOpen, StatusReview, StatusQuarantined} }

// Waiting counts the letters that wait for an operator.
func (q *QueueNumbers) Waiting() (n int64) {
	for _, status := range Waiting() {
		n += q.Letters[status]
	}
	return n
}
