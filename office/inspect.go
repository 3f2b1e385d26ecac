package office

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// HealthView shows the health of the store. Doctor prints it.
type HealthView struct {
	Store       string          `json:"store"`
	Engine      string          `json:"engine"`
	Schema      int             `json:"schema"`
	KnownSchema int             `json:"known_schema"`
	Durability  []store.Setting `json:"-"`
	SizeBytes   int64           `json:"size_bytes"`
	FreeBytes   *int64          `json:"free_bytes"`    // null: the store cannot tell
	Reserve     *int64          `json:"reserve_bytes"` // null: none
	Owners      []OwnerView     `json:"owners"`
	OldestLease Timestamp       `json:"oldest_lease_ends_at"`
	Now         Timestamp       `json:"now"`
	LastWrite   Timestamp       `json:"last_write_at"`
	AheadS      int64           `json:"clock_ahead_s"` // of the store's own clock before the machine's
	Caught      Timestamp       `json:"clock_caught_up_at"`
	Queues      int             `json:"queues"`
	Problems    []HealthProblem `json:"findings"`
}

// OwnerView is a process that holds, or held, leases.
type OwnerView struct {
	Name      string    `json:"name"`
	StartedAt Timestamp `json:"started_at"`
	Alive     bool      `json:"alive"`
	Leases    int64     `json:"leases"`
}

// HealthProblem names a problem and its fix.
type HealthProblem struct {
	What string  `json:"what"`
	Fix  string  `json:"fix"`
	Kind Problem `json:"-"` // of the store itself; "" of its queues and processes
}

// Problem is a kind of what can be wrong with a store.
type Problem string

// The problems, worst first.
const (
	ProblemDurability Problem = "durability"   // commits may be lost with the power
	ProblemFull       Problem = "disk full"    // new messages are refused
	ProblemFilling    Problem = "disk filling" // they will be
	ProblemClock      Problem = "clock"        // it is behind the newest record
)

// clockSlack bounds how far the newest write may be ahead of the clock.
const clockSlack = time.Minute

// Inspect reads the health of the store, and changes nothing.
func (o *Office) Inspect(ctx context.Context) (HealthView, error) {
	inspect := o.store.Features().Inspect
	if inspect == nil {
		return HealthView{}, nixie.Errorf(nixie.CodeUnavailable, "this store cannot report its health: doctor is not available")
	}
	h, err := inspect(ctx)
	if err != nil {
		return HealthView{}, err
	}
	queues, err := o.store.Queues(ctx, store.QueueQuery{})
	if err != nil {
		return HealthView{}, err
	}
	e := HealthView{
		Store: h.Endpoint, Engine: h.Engine, Schema: h.Schema, KnownSchema: h.KnownSchema, Durability: h.Durability,
		SizeBytes: h.Size, FreeBytes: nilIfNegative(h.Free), Reserve: nilIfNegative(h.Reserve), Owners: []OwnerView{},
		OldestLease: Timestamp{h.OldestLease},
		Now:         Timestamp{h.Now}, LastWrite: Timestamp{h.Latest}, AheadS: int64(h.Ahead / time.Second), Caught: Timestamp{h.Caught},
		Queues: len(queues), Problems: []HealthProblem{},
	}
	for _, w := range h.Owners {
		e.Owners = append(e.Owners, OwnerView{w.Name, Timestamp{w.StartedAt}, w.Alive, w.Leases})
	}
	e.diagnose(&h, queues, o.wording)
	for i := range queues {
		b, err := o.blocked(ctx, &queues[i])
		if err != nil {
			return HealthView{}, err
		}
		if b.messages > 0 {
			e.report("queue %s has %s", b.fix(o.wording), b.queue, b)
		}
		if q := &queues[i]; q.NeverAsked() {
			e.report("queue %s has %s", unaskedFix, q.Name, o.unaskedText(q))
		}
	}
	return e, nil
}

// problemsOf lists what is wrong with the store itself, worst first.
func problemsOf(h *store.Health) (list []HealthProblem) {
	add := func(kind Problem, fix, what string, args ...any) {
		list = append(list, HealthProblem{fmt.Sprintf(what, args...), fix, kind})
	}
	for _, d := range h.Durability {
		if d.Value != d.Want {
			add(ProblemDurability, "open it with nixie only", "store has %s %s instead of %s: commits may be lost with the power",
				d.Name, d.Value, d.Want)
		}
	}
	if h.Reserve > 0 && h.Free < h.Reserve {
		add(ProblemFull, "free some space", "disk has %d MiB free, less than the reserve of %d MiB: new messages are refused",
			h.Free>>20, h.Reserve>>20)
	} else if h.Reserve > 0 && h.Free < 4*h.Reserve {
		add(ProblemFilling, "free some space", "disk has %d MiB free, close to the reserve of %d MiB", h.Free>>20, h.Reserve>>20)
	}
	switch ahead := h.Latest.Sub(h.Now); {
	case h.Ahead > clockSlack:
		add(ProblemClock, "set this machine's clock right if it is behind; else wait, it ends by itself",
			"the store's clock is %s ahead of this machine's, which was set back: until %s what waits takes up to a ninth longer, "+
				"and letters and the audit are dated ahead", h.Ahead.Round(time.Second), h.Caught.Format(time.RFC3339))
	case ahead > clockSlack:
		add(ProblemClock, "set the clock of this machine right", "the newest record is %s ahead of the clock", ahead.Round(time.Second))
	}
	return list
}

func (e *HealthView) diagnose(h *store.Health, queues []store.QueueInfo, in Wording) {
	e.Problems = append(e.Problems, problemsOf(h)...)
	for _, w := range h.Owners {
		if !w.Alive {
			e.report("owner %s ended without a stop, leases left: %d",
				"run a worker on its queues: the messages are judged by the next claim", w.Name, w.Leases)
		}
	}
	if !h.OldestLease.IsZero() && h.Now.Sub(h.OldestLease) > clockSlack {
		e.report("a lease ended %s ago and no worker claimed since", "run a worker on its queue",
			h.Now.Sub(h.OldestLease).Round(time.Second))
	}
	for _, q := range queues {
		if q.Settings.Paused {
			e.report("queue %s is paused (%s), messages waiting: %d", in.say(pausedFix), q.Name, q.Settings.PausedNote,
				q.Ready+q.Scheduled)
		}
	}
}

func (e *HealthView) report(what, fix string, args ...any) {
	e.Problems = append(e.Problems, HealthProblem{What: fmt.Sprintf(what, args...), Fix: fix})
}
