package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Violation is a rule that was broken.
type Violation struct {
	Rule Rule
	Text string
}

// Rule is something that a store or a worker has to keep to.
type Rule string

// The rules.
const (
	Conserved Rule = "conservation" // what was taken in is there, in one state, until its retention is over
	OneHolder Rule = "one holder"   // a lease is handed out only when the one before is over
	Numbers   Rule = "numbers"      // leases, deliveries, attempts, crashes, lives are counted one by one
	Fenced    Rule = "fence"        // a call under a lease that is over changes nothing, one under a current lease is not refused
	NotEarly  Rule = "not early"    // by the store's clock
	Ordered   Rule = "order"        // of a stream
	Fair      Rule = "no starving"  // a claim brings what is due
	Keys      Rule = "dedupe"       // a key has one holder
	Whole     Rule = "whole"        // body and steps
	Bounds    Rule = "bounds"       // of attempts and deliveries, when a handler begins
	Office    Rule = "office"       // letters go by the table of moves
	Once      Rule = "once"         // an operation moves a letter once, and its counts add up
	Pace      Rule = "pace"         // not faster than the rate
	Answers   Rule = "answers"      // errors are those that the contract names
	Sound     Rule = "sound"        // the invariants of storetest
	Ends      Rule = "liveness"     // when the faults stop all that is not blocked ends
)

// ledger is what the witness knows of a store: what it answered, and what
// follows from that. It judges by the store's clock.
type ledger struct {
	now        func() time.Time
	queues     map[string]nixie.QueueSettings
	entries    []*entry // as they were taken in; those that are gone too
	byID       map[nixie.ID]*entry
	letters    map[nixie.ID]*entry
	keys       map[name]*entry
	operations map[nixie.ID]map[nixie.ID]bool // letter → decided
	gone       map[string]bool                // owners whose process ended
	places     int64
	found      *Violation // the first
	seen       map[string]int
}

// name is one of a queue: a key or a stream.
type name struct{ queue, name string }

// entry is one message.
type entry struct {
	name, queue, stream, key string
	id                       nixie.ID
	hash                     nixie.Hash
	state                    nixie.State
	due                      time.Time
	place                    int64 // in its stream
	ordered, mayPass         bool

	lease    int64 // number of the newest
	owner    string
	until    time.Time // end of the lease
	vanished bool      // the next claim is there to judge
	perhaps  bool      // it was canceled when its lease was over: the crash counts or not

	attempts, deliveries, crashes, life int
	steps                               []string
	endedAt                             time.Time
	hasKey                              bool

	letter               nixie.ID
	status               nixie.Status
	redrivable, review   bool
	blocks               bool // its followers wait for its letter
	resolvedAt, prunedAt time.Time
}

func newLedger(now func() time.Time) *ledger {
	return &ledger{
		now: now, queues: map[string]nixie.QueueSettings{}, byID: map[nixie.ID]*entry{}, letters: map[nixie.ID]*entry{},
		keys: map[name]*entry{}, operations: map[nixie.ID]map[nixie.ID]bool{}, gone: map[string]bool{}, seen: map[string]int{},
	}
}

// want notes the first rule that is broken.
func (l *ledger) want(ok bool, rule Rule, format string, args ...any) {
	if !ok && l.found == nil {
		l.found = &Violation{rule, fmt.Sprintf(format, args...)}
	}
}

// over reports whether a lease can be taken from its holder.
func (l *ledger) over(e *entry) bool {
	return e.state == nixie.Leased && (l.gone[e.owner] || !l.now().Before(e.until))
}

// current reports whether a delivery's lease is good.
func (l *ledger) current(e *entry, d *nixie.Delivery) bool {
	return e != nil && e.state == nixie.Leased && e.lease == d.Lease.Number && !l.over(e)
}

// lapse ends a lease that is over, which a store does when it likes.
func (l *ledger) lapse(e *entry) {
	if l.over(e) {
		e.state, e.owner, e.due = nixie.Queued, "", l.now()
		if !e.vanished { // who judges runs nothing
			e.crashes++
			e.attempts--
		}
		e.vanished = true
	}
}

// going reports whether a message is on its way.
func (e *entry) going() bool { return e.state == nixie.Queued || e.state == nixie.Leased }

// stream lists a stream: what is on its way, and what is dead and blocks.
func (l *ledger) stream(own name) (going, blocking []*entry) {
	for _, e := range l.entries {
		if !e.ordered || e.queue != own.queue || e.stream != own.name || !e.prunedAt.IsZero() {
			continue
		}
		if e.going() {
			going = append(going, e)
		} else if e.blocks {
			blocking = append(blocking, e)
		}
	}
	byPlace := func(a, b *entry) int { return int(a.place - b.place) }
	slices.SortFunc(going, byPlace)
	slices.SortFunc(blocking, byPlace)
	return going, blocking
}

// may lists the messages of a stream that can be handed out now. Of several the
// store chooses one.
func (l *ledger) may(own name) []*entry {
	going, blocking := l.stream(own)
	var waiting []*entry
	for _, e := range going {
		if e.state == nixie.Leased && !l.over(e) {
			return nil
		}
		if l.over(e) || !e.due.After(l.now()) {
			waiting = append(waiting, e)
		}
	}
	if l.queues[own.queue].Order != nixie.OrderStrict || len(waiting) == 0 {
		return waiting
	}
	head := going[0]
	blocked := len(blocking) > 0 && blocking[0].place < head.place
	if waiting[0] == head && !blocked {
		return waiting[:1]
	}
	return slices.DeleteFunc(waiting, func(e *entry) bool { return !e.mayPass })
}

// take gives a message its key, and free releases it when the scope of the queue
// says so: ended is false for one whose letter waits for somebody.
func (l *ledger) take(e *entry) {
	if e.key != "" {
		own := name{e.queue, e.key}
		holder := l.keys[own]
		l.want(holder == nil || holder == e, Keys, "%s gets the key %q, which %v has", e.name, e.key, holder)
		l.keys[own], e.hasKey = e, true
	}
}

func (l *ledger) free(e *entry, ended bool) {
	scope := l.queues[e.queue].DedupeScope
	if e.hasKey && scope != nixie.DedupeEver && (ended || scope != nixie.DedupeUnresolved) {
		l.drop(e)
	}
}

func (l *ledger) drop(e *entry) {
	if e.hasKey {
		delete(l.keys, name{e.queue, e.key})
		e.hasKey = false
	}
}

// String names the message.
func (e *entry) String() string { return e.name }

// join puts a message at the end of its stream.
func (l *ledger) join(e *entry) {
	l.places++
	e.place, e.ordered = l.places, e.stream != "" && l.queues[e.queue].Ordered()
}

// accepted judges an enqueue.
func (l *ledger) accepted(messages []nixie.Message, receipts []nixie.Receipt, err error) {
	if err != nil {
		l.want(nixie.CodeOf(err) == nixie.CodeConflict && l.refuses(messages), Keys, "enqueue of %s is refused: %v", messages[0].Key, err)
		return
	}
	l.want(!l.refuses(messages), Keys, "enqueue of %s is taken, and an ID or a key of it is taken by another", messages[0].Key)
	l.want(len(receipts) == len(messages), Conserved, "%d receipts for %d messages", len(receipts), len(messages))
	for i := range receipts {
		m, r := &messages[i], receipts[i]
		holder := l.keys[name{m.Queue, m.DedupeKey}]
		if m.DedupeKey == "" {
			holder = nil
		}
		if r.Duplicate {
			l.seen["duplicate"]++
			l.want(holder != nil && holder.id == r.ID, Keys, "%s is a duplicate of another message than %v, the holder of %q", m.Key, holder, m.DedupeKey)
			if holder != nil && m.OnConflict == nixie.ReplaceExisting {
				holder.hash, holder.name = nixie.HashBody(m.Body), m.Key
			}
			continue
		}
		l.want(holder == nil, Keys, "%s is taken in and %v holds its key %q", m.Key, holder, m.DedupeKey)
		l.want(l.byID[r.ID] == nil || !l.byID[r.ID].prunedAt.IsZero(), Conserved, "%s gets the ID of %v", m.Key, l.byID[r.ID])
		l.add(m, r.ID)
	}
}

// refuses reports whether a call has to be refused: an ID is there or a key is
// taken, before or by the call itself.
func (l *ledger) refuses(messages []nixie.Message) bool {
	seen := map[name]bool{}
	for i := range messages {
		m := &messages[i]
		if e := l.byID[m.ID]; e != nil && e.prunedAt.IsZero() && (m.DedupeKey == "" || l.keys[name{m.Queue, m.DedupeKey}] == nil) {
			return true
		}
		if m.DedupeKey == "" {
			continue
		}
		own := name{m.Queue, m.DedupeKey}
		holder := l.keys[own]
		switch {
		case holder != nil && m.OnConflict == nixie.FailOnConflict, seen[own] && m.OnConflict == nixie.FailOnConflict:
			return true
		case holder != nil && m.OnConflict == nixie.ReplaceExisting && (holder.state != nixie.Queued || holder.deliveries > 0):
			return true
		}
		seen[own] = true
	}
	return false
}

func (l *ledger) add(m *nixie.Message, id nixie.ID) {
	e := &entry{
		name: m.Key, queue: m.Queue, stream: m.Stream, key: m.DedupeKey, id: id, hash: nixie.HashBody(m.Body),
		state: nixie.Queued, due: l.now().Add(m.Delay), life: 1,
	}
	l.entries, l.byID[id] = append(l.entries, e), e
	l.take(e)
	l.join(e)
}

// set takes note of the settings of a queue.
func (l *ledger) set(queue string, s nixie.QueueSettings) { l.queues[queue] = s }
