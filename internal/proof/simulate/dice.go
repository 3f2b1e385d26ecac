package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// chance is how often an act is chosen.
type chance struct {
	do     Act
	weight int
}

// chances are those of a seed before it leaves some out.
func chances() []chance {
	return []chance{
		{Wait, 36}, {Enqueue, 18}, {Repeat, 10}, {Arrive, 10}, {Receive, 80}, {Finish, 80}, {Step, 6}, {Release, 4}, {Extend, 16},
		{Stall, 6}, {Wake, 6}, {Kill, 3}, {Leave, 1}, {Start, 30}, {Skew, 2},
		{Plan, 10}, {Run, 14}, {Amend, 8}, {Pause, 1}, {Resume, 10}, {Unblock, 2}, {Pass, 2}, {Prune, 1}, {Purge, 1},
	}
}

// essential acts are in every seed: without them nothing happens, or nothing ends.
func essential(do Act) bool {
	return slices.Contains([]Act{Wait, Enqueue, Receive, Finish, Wake, Start, Resume}, do)
}

// gambler chooses events that mean something in the world as it is.
type gambler struct {
	*rand.Rand
	w        *world
	chances  []chance
	total    int
	faults   int // of 100 events
	messages int
	plans    int
	recent   []string // the newest messages
	then     *Event   // what comes next, whatever the dice say
}

// newGambler gives a seed its own likes: some acts are left out, others are done
// often, so that seeds differ in kind and not only in order.
func newGambler(dice *rand.Rand, w *world) *gambler {
	g := &gambler{Rand: dice, w: w, faults: pick(dice, []int{0, 5, 10, 25})}
	for _, c := range chances() {
		switch {
		case essential(c.do):
		case dice.IntN(4) == 0:
			continue
		case dice.IntN(5) == 0:
			c.weight *= 4
		}
		g.chances = append(g.chances, c)
		g.total += c.weight
	}
	return g
}

func (g *gambler) act() Act {
	n := g.IntN(g.total)
	for _, c := range g.chances {
		if n -= c.weight; n < 0 {
			return c.do
		}
	}
	return Wait
}

// next is the next event: one that somebody can do now.
func (g *gambler) next() Event {
	if e := g.then; e != nil {
		g.then = nil
		return *e
	}
	e := Event{Do: g.act()}
	can := g.processes(e.Do)
	for len(can) == 0 {
		e.Do = g.act()
		can = g.processes(e.Do)
	}
	if e.Do == Wait {
		e.For = g.wait()
		return e
	}
	p := pick(g.Rand, can)
	e.By = p.Name
	g.fill(&e, p)
	if g.IntN(100) < g.faults {
		e.Fault = Fault{Kind: pick(g.Rand, []FaultKind{Fails, Lost, Lost, Hangs, Slow, Twice}), Call: g.IntN(2) * g.IntN(2)}
		switch {
		case e.Fault.Kind == Slow:
			e.Fault.For = pick(g.Rand, []time.Duration{50 * time.Millisecond, time.Second, 31 * time.Second})
		case e.Fault.Kind == Hangs && g.IntN(2) == 0: // so that others come first
			g.then = &Event{Do: Stall, By: p.Name}
		}
	}
	return e
}

// processes are those that can do it.
func (g *gambler) processes(do Act) []*process {
	return slices.DeleteFunc(slices.Clone(g.w.processes), func(p *process) bool {
		switch do {
		case Wait, Kill:
			return false
		case Start:
			return p.up
		case Wake:
			return !p.stalled
		}
		return !p.up || p.stalled || !g.can(do, p)
	})
}

// can reports whether an act means something to a process that is there.
func (g *gambler) can(do Act, p *process) bool {
	switch do {
	case Repeat:
		return len(p.unsure) > 0
	case Arrive:
		return len(p.line.hanging)+len(p.line.repeated) > 0
	case Finish, Step, Extend, Release:
		return len(p.hands) > 0
	case Receive, Stall, Skew:
		return p.Name != officeName
	case Plan:
		return len(g.dead()) > 0
	case Run:
		return g.plans > 0
	case Resume:
		return slices.ContainsFunc(g.w.setup.names(), func(queue string) bool { return g.w.book.queues[queue].Paused })
	case Unblock, Pass:
		return len(g.w.setup.ordered()) > 0
	}
	return true
}

// dead names the messages that have letters.
func (g *gambler) dead() []string {
	var dead []string
	for _, e := range g.w.book.entries {
		if e.status != "" && e.prunedAt.IsZero() {
			dead = append(dead, e.name)
		}
	}
	return dead
}

// wait is a moment, a while, or until the end of somebody's lease or wait.
func (g *gambler) wait() time.Duration {
	switch n := g.IntN(20); {
	case n < 10:
		return pick(g.Rand, []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second})
	case n < 12:
		return pick(g.Rand, []time.Duration{5 * time.Second, 31 * time.Second, time.Minute})
	}
	at := g.w.book.nextMoment()
	if at.IsZero() {
		return time.Second
	}
	return max(at.Sub(g.w.clock.Now()).Truncate(time.Millisecond)+time.Duration(g.IntN(3)-1)*time.Millisecond, time.Millisecond)
}

// nextMoment is when the next lease or wait of a message ends; zero if none does.
func (l *ledger) nextMoment() time.Time {
	var first time.Time
	for _, e := range l.entries {
		at := e.due
		if e.state == nixie.Leased {
			at = e.until
		}
		if e.going() && at.After(l.now()) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// fill chooses what an event is about.
func (g *gambler) fill(e *Event, p *process) {
	switch e.Do {
	case Enqueue:
		for range 1 + g.IntN(4) {
			e.New = append(e.New, g.message())
		}
	case Receive:
		e.Queue, e.N = g.queue(), 1+g.IntN(8)
	case Finish:
		e.On = g.running(p)
		e.How = pick(g.Rand, append([]string{"ok", "ok", "ok", "ok", "transient", "transient"}, outcomes()...))
	case Extend:
		e.N = g.IntN(2)
	case Step:
		e.On, e.How = g.running(p), pick(g.Rand, []string{"s1", "s2", "s3"})
	case Skew:
		e.For = pick(g.Rand, []time.Duration{0, time.Hour, -time.Hour, 30 * time.Second})
	case Plan:
		g.plan(e)
	case Run:
		e.Op, e.N = max(g.plans-g.IntN(3), 1), 1+g.IntN(4)
		e.Rate, e.For = pick(g.Rand, []int{0, 0, 1, 10}), pick(g.Rand, []time.Duration{0, time.Second, 10 * time.Second})
	case Amend:
		g.amend(e)
	case Unblock, Pass:
		e.Queue, e.Stream = pick(g.Rand, g.w.setup.ordered()), g.stream()
	case Pause, Resume, Purge:
		e.Queue = g.queue()
	}
}

func (g *gambler) queue() string  { return pick(g.Rand, g.w.setup.names()) }
func (g *gambler) stream() string { return pick(g.Rand, []string{"s", "t", "u"}) }

func (g *gambler) message() Spec {
	g.messages++
	s := Spec{Name: fmt.Sprintf("m%d", g.messages), Queue: g.queue()}
	s.Body = s.Name
	if g.IntN(2) == 0 {
		s.Stream = g.stream()
	}
	if g.IntN(4) == 0 {
		s.Key = pick(g.Rand, []string{"k1", "k2", "k3", "k4"})
		s.Conflict = pick(g.Rand, []nixie.Conflict{nixie.ReturnExisting, nixie.ReturnExisting, nixie.FailOnConflict, nixie.ReplaceExisting})
	}
	if g.IntN(5) == 0 {
		s.Priority = g.IntN(9) - 4
	}
	if g.IntN(6) == 0 {
		s.Delay = pick(g.Rand, []time.Duration{100 * time.Millisecond, 10 * time.Second, 2 * time.Minute})
	}
	if g.IntN(10) == 0 {
		s.Expires = pick(g.Rand, []time.Duration{time.Second, time.Minute})
	}
	s.Type = pick(g.Rand, []string{"", "t1", "t2"})
	if g.recent = append(g.recent, s.Name); len(g.recent) > 20 {
		g.recent = g.recent[1:]
	}
	return s
}

func (g *gambler) running(p *process) []string {
	late := g.IntN(8) == 0 // most late ones wait until somebody else is at it
	runs := p.with(func(r *run) bool { return !r.begun.IsZero() && (late || !g.w.late(r)) })
	if len(runs) == 0 {
		return nil
	}
	return []string{pick(g.Rand, runs).d.Key}
}

func (g *gambler) plan(e *Event) {
	g.plans++
	e.Op, e.N = g.plans, g.IntN(2)*g.IntN(6)
	e.How = string(pick(g.Rand, []nixie.Event{
		nixie.OnRedrive, nixie.OnRedrive, nixie.OnRedrive, nixie.OnRedrive, nixie.OnRedrive, nixie.OnRedrive, nixie.OnRedrive, nixie.OnDiscard, nixie.OnHold, nixie.OnUnhold, nixie.OnRequalify, nixie.OnRequalify, nixie.OnRestore, nixie.OnNote, nixie.OnPurge,
	}))
	e.Force = g.IntN(2) == 0
	dead := g.dead()
	if e.Queue = g.queue(); len(dead) > 0 && g.IntN(2) == 0 {
		e.Queue = ""
		for range 1 + g.IntN(3) {
			if named := pick(g.Rand, dead); !slices.Contains(e.On, named) {
				e.On = append(e.On, named)
			}
		}
	}
}

func (g *gambler) amend(e *Event) {
	e.How = string(pick(g.Rand, []store.ChangeVerb{store.Cancel, store.Hold, store.RetryNow, store.RetryNow, store.ResetAttempts, store.Reschedule, store.MayPass}))
	e.N = g.IntN(2)
	if e.How == string(store.Reschedule) {
		e.For = pick(g.Rand, []time.Duration{-time.Second, time.Second, time.Minute})
	}
	var going []string
	for _, x := range g.w.book.entries {
		if x.going() {
			going = append(going, x.name)
		}
	}
	switch {
	case len(going) > 0 && g.IntN(4) > 0:
		e.On = []string{pick(g.Rand, going)}
	case len(g.recent) > 0:
		e.On = []string{pick(g.Rand, g.recent)}
	}
}
