package histories

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// open is the end of a call whose outcome is unknown: it may happen at any time
// after it began.
const open = math.MaxInt64

// event is one call with its answer, or the end of a process.
type event struct {
	client      int
	owner       string // the name of the store that was called
	call        Call
	answer      Answer
	from, to    int64     // in the order of all starts and ends
	early, late time.Time // by the store's clock, at its start and its end
}

// record holds what the clients of a history did. It is safe for concurrent use.
type record struct {
	clock *Clock
	mu    sync.Mutex
	ticks int64
	all   []*event
}

// begin notes the start of a call.
func (r *record) begin(client int, owner string, c Call) *event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks++
	e := &event{client: client, owner: owner, call: c, from: r.ticks, to: open, early: r.clock.Now()}
	r.all = append(r.all, e)
	return e
}

// end notes its answer.
func (r *record) end(e *event, a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks++
	e.answer, e.to, e.late = a, r.ticks, r.clock.Now()
}

// part holds what an event means to one message.
type part struct {
	*event
	message nixie.ID
	code    nixie.Code
	loan    *Loan // that was claimed or is used; nil for a claim that no client knows of

	found     *Found   // by a look; nil: no such message
	keyed     bool     // the message has a dedupe key
	stream    string   // of the message
	refusedBy nixie.ID // the holder of the key that refused it
	withheld  bool     // by a claim that outlasted its leases, if it had it at all
}

// outlasted reports whether a claim had leases that may have been over before it
// answered: a message that others have moved on meanwhile is not in its answer.
func (e *event) outlasted() bool {
	return e.call.Kind == Claim && e.answer.Code == "" && len(e.answer.Loans) < e.call.Max && e.late.Sub(e.early) >= e.call.Lease
}

// names reports whether the answer of a claim has the message.
func (e *event) names(id nixie.ID) bool {
	return slices.ContainsFunc(e.answer.Loans, func(l Loan) bool { return l.ID == id })
}

// end returns the latest time at which the part had happened.
func (p *part) end() int64 {
	if p.code == nixie.CodeOutcomeUnknown {
		return open
	}
	return p.to
}

// latest is the store's clock at the end of the part.
func (p *part) latest() int64 {
	if p.code == nixie.CodeOutcomeUnknown {
		return math.MaxInt64
	}
	return p.late.UnixNano()
}

// parts lists what an event means to each message it names. What has certainly
// not happened means nothing, and neither does a look whose answer was lost.
func (e *event) parts() []part {
	var all []part
	switch e.call.Kind {
	case Resume, Configure:
		return nil
	case Look, LookAll:
		return e.seen()
	}
	add := func(id nixie.ID, code nixie.Code, loan *Loan) {
		if code != nixie.CodeUnavailable {
			all = append(all, part{event: e, message: id, code: code, loan: loan})
		}
	}
	switch e.call.Kind {
	case Enqueue:
		for i, m := range e.call.Messages {
			if e.answer.Code == "" && e.answer.Receipts[i].Duplicate || e.answer.Code == nixie.CodeConflict {
				continue
			}
			add(m.ID, e.answer.Code, nil)
		}
	case Claim:
		for i := range e.answer.Loans {
			add(e.answer.Loans[i].ID, "", &e.answer.Loans[i])
		}
	case Extend, Settle, Finish:
		for i := range e.call.Loans {
			add(e.call.Loans[i].ID, e.answer.part(i), &e.call.Loans[i])
		}
	default:
		add(e.call.Message, e.answer.Code, nil)
	}
	return all
}

// seen lists what a look says of each message.
func (e *event) seen() []part {
	var all []part
	for i := range e.answer.Found {
		all = append(all, part{event: e, message: e.answer.Found[i].ID, found: &e.answer.Found[i]})
	}
	if e.call.Kind == Look && e.answer.Code == "" && len(all) == 0 {
		all = append(all, part{event: e, message: e.call.Message})
	}
	return all
}

// unknown reports whether it is unknown if the event happened.
func (e *event) unknown() bool {
	return e.answer.Code == nixie.CodeOutcomeUnknown || slices.Contains(e.answer.Parts, nixie.CodeOutcomeUnknown)
}

// line is the event for people, as far as it is about one of the messages.
func (e *event) line(about func(nixie.ID) bool) string {
	var b strings.Builder
	to := fmt.Sprint(e.to)
	if e.to == open {
		to = "?"
	}
	fmt.Fprintf(&b, "%5d to %5s  %s…%s  client %d on %-10s %s", e.from, to, moment(e.early), moment(e.late), e.client, e.owner, e.call.Kind)
	if e.call.Verb != "" {
		fmt.Fprintf(&b, " by %s, delay %s,", e.call.Verb, e.call.Delay)
	}
	for i, m := range e.call.Messages {
		if about(m.ID) || m.Key != "" {
			fmt.Fprintf(&b, " %s", short(m.ID))
			if m.Key != "" {
				fmt.Fprintf(&b, " key %s", m.Key)
			}
			if m.Stream != "" {
				fmt.Fprintf(&b, " stream %s", m.Stream)
			}
			if i < len(e.answer.Receipts) && e.answer.Receipts[i].Duplicate {
				fmt.Fprintf(&b, " (is %s already)", short(e.answer.Receipts[i].ID))
			}
		}
	}
	for i := range e.call.Loans {
		if l := &e.call.Loans[i]; about(l.ID) {
			fmt.Fprintf(&b, " %s lease %d → %s", short(l.ID), l.Number, outcome(e.answer.part(i)))
		}
	}
	for i := range e.answer.Loans {
		if l := &e.answer.Loans[i]; about(l.ID) {
			fmt.Fprintf(&b, " → %s lease %d until %s, generation %d, attempt %d, delivery %d, crashes %d", short(l.ID), l.Number,
				moment(l.Until), l.Generation, l.Attempts, l.Deliveries, l.Crashes)
			if l.Abandoned {
				fmt.Fprintf(&b, ", abandoned by %s", l.AbandonedBy)
			}
		}
	}
	if !e.call.Message.IsZero() {
		fmt.Fprintf(&b, " %s", short(e.call.Message))
	}
	for _, f := range e.answer.Found {
		if about(f.ID) {
			fmt.Fprintf(&b, " → %s is %s, generation %d, attempts %d, deliveries %d, crashes %d", short(f.ID), f.State, f.Generation,
				f.Attempts, f.Deliveries, f.Crashes)
		}
	}
	if len(e.answer.Found) == 0 && len(e.call.Loans) == 0 && (e.call.Kind != Claim || e.answer.Code != "") && e.call.Kind != gone {
		fmt.Fprintf(&b, " → %s", outcome(e.answer.Code))
	}
	return b.String()
}

func outcome(c nixie.Code) string {
	if c == "" {
		return "ok"
	}
	return string(c)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.UTC().Format("15:04:05.000")
}

// nameOf makes the ID of the n-th message of a history.
func nameOf(seed uint64, n int) nixie.ID {
	id := nixie.ID{0: 0x6e, 1: 0x69}
	for i := range 8 {
		id[2+i] = byte(seed >> (8 * (7 - i)))
	}
	for i := range 4 {
		id[12+i] = byte(n >> (8 * (3 - i)))
	}
	return id
}

// short is the number of a message in its history.
func short(id nixie.ID) string {
	n := 0
	for _, b := range id[12:] {
		n = n<<8 | int(b)
	}
	return fmt.Sprint("m", n)
}
