package office

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// HealthView is how the store is: what doctor prints.
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
	Queues      int             `json:"queues"`
	Problems    []Problem       `json:"findings"`
}

// OwnerView is a process that holds, or held, leases.
type OwnerView struct {
	Name      string    `json:"name"`
	StartedAt Timestamp `json:"started_at"`
	Alive     bool      `json:"alive"`
	Leases    int64     `json:"leases"`
}

// Problem is something that is wrong, and what to do about it.
type Problem struct {
	What string `json:"what"`
	Fix  string `json:"fix"`
}

// clockSlack is how far ahead of the clock the newest write may be.
const clockSlack = time.Minute

// Inspect asks the store how it is, without changing anything.
func (o *Office) Inspect(ctx context.Context) (HealthView, error) {
	inspect := o.store.Features().Inspect
	if inspect == nil {
		return HealthView{}, nixie.Errorf(nixie.CodeUnavailable, "this store cannot tell how it is: doctor is not available")
	}
	h, err := inspect(ctx)
	if err != nil {
		return HealthView{}, err
	}
	queues, err := o.store.Queues(ctx, store.QueueLook{})
	if err != nil {
		return HealthView{}, err
	}
	e := HealthView{
		Store: h.Place, Engine: h.Engine, Schema: h.Schema, KnownSchema: h.KnownSchema, Durability: h.Durability,
		SizeBytes: h.Size, FreeBytes: known(h.Free), Reserve: known(h.Reserve), Owners: []OwnerView{},
		OldestLease: Timestamp{h.OldestLease},
		Now:         Timestamp{h.Now}, LastWrite: Timestamp{h.Latest}, Queues: len(queues), Problems: []Problem{},
	}
	for _, w := range h.Owners {
		e.Owners = append(e.Owners, OwnerView{w.Name, Timestamp{w.StartedAt}, w.Alive, w.Leases})
	}
	e.look(&h, queues)
	for i := range queues {
		b, err := o.blocked(ctx, &queues[i])
		if err != nil {
			return HealthView{}, err
		}
		if b.messages > 0 {
			e.find("queue %s has %s", b.fix(), b.queue, b)
		}
	}
	return e, nil
}

// known is a number of bytes, or nil where it is below 0 because nobody knows it.
func known(bytes int64) *int64 {
	if bytes < 0 {
		return nil
	}
	return &bytes
}

func (e *HealthView) look(h *store.Health, queues []nixie.QueueInfo) {
	for _, d := range h.Durability {
		if d.Value != d.Want {
			e.find("store has %s %s instead of %s: commits may be lost with the power", "open it with nixie only", d.Name, d.Value, d.Want)
		}
	}
	if h.Reserve > 0 && h.Free < h.Reserve {
		e.find("disk has %d MiB free, less than the reserve of %d MiB: new messages are refused", "free some space", h.Free>>20,
			h.Reserve>>20)
	} else if h.Reserve > 0 && h.Free < 4*h.Reserve {
		e.find("disk has %d MiB free, close to the reserve of %d MiB", "free some space", h.Free>>20, h.Reserve>>20)
	}
	for _, w := range h.Owners {
		if !w.Alive {
			e.find("owner %s ended without a stop, leases left: %d",
				"run a worker on its queues: the messages are judged by the next claim", w.Name, w.Leases)
		}
	}
	if !h.OldestLease.IsZero() && h.Now.Sub(h.OldestLease) > clockSlack {
		e.find("a lease ended %s ago and nobody claimed since", "run a worker on its queue", h.Now.Sub(h.OldestLease).Round(time.Second))
	}
	if ahead := h.Latest.Sub(h.Now); ahead > clockSlack {
		e.find("the newest record is %s ahead of the clock", "set the clock of this machine right", ahead.Round(time.Second))
	}
	for _, q := range queues {
		if q.Settings.Paused {
			e.find("queue %s is paused (%s), messages waiting: %d", "see why, then resume it", q.Name, q.Settings.PausedNote,
				q.Ready+q.Scheduled)
		}
	}
}

func (e *HealthView) find(what, fix string, args ...any) {
	e.Problems = append(e.Problems, Problem{fmt.Sprintf(what, args...), fix})
}
