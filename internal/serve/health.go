package serve

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// DepthThreshold is the number of letters from which on a queue makes the health degraded.
const DepthThreshold = 100

// Check checks one thing that the program needs to work.
type Check struct {
	Name string
	Do   func(context.Context) error
}

// checking is a check whose answer is kept for a moment.
type checking struct {
	name string
	answer[struct{}]
}

func (s *Server) newChecking(c Check) *checking {
	return &checking{c.Name, answer[struct{}]{keep: checkFor, clock: s.c.Clock, within: s.aborted,
		ask: func(ctx context.Context) (struct{}, error) { return struct{}{}, c.Do(ctx) }}}
}

// storeChecks checks that a store answers, and that its schema is the one that this program knows.
func storeChecks(st store.Store) []Check {
	ping := st.Features().Ping
	if ping == nil {
		return []Check{{"store", func(ctx context.Context) error {
			_, err := st.Queues(ctx, store.QueueQuery{Settings: true})
			return err
		}}}
	}
	return []Check{
		{"store", func(ctx context.Context) error {
			_, _, err := ping(ctx)
			return err
		}},
		{"schema", func(ctx context.Context) error {
			has, known, err := ping(ctx)
			if err == nil && has != known {
				err = nixie.Errorf(nixie.CodeUnavailable, "schema has version %d, this program knows %d: see nixie migrate status",
					has, known)
			}
			return err
		}},
	}
}

// The words of a health.
const (
	healthy   = "healthy"
	degraded  = "degraded"
	unhealthy = "unhealthy"
)

// health is the body of the health routes.
type health struct {
	Status string        `json:"status"`
	DLQ    *depth        `json:"dlq,omitempty"`    // of the queue with the most letters
	Checks []checkResult `json:"checks,omitempty"` // those that fail, or all
}

// depth counts the letters of a queue that wait for an operator.
type depth struct {
	Name      string `json:"name"`
	Depth     int64  `json:"depth"`
	Threshold int64  `json:"threshold"`
}

type checkResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// live answers whether the program runs.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, health{Status: healthy})
}

// ready answers whether the program can work. Letters never make it unready: they are no reason to
// start it again.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	h := health{Status: healthy}
	verbose := r.URL.Query().Has("verbose")
	for _, c := range s.checks {
		result := checkResult{Name: c.name, OK: true}
		if _, err := c.get(r.Context()); err != nil {
			h.Status, result.OK, result.Error = unhealthy, false, err.Error()
		}
		if verbose || !result.OK {
			h.Checks = append(h.Checks, result)
		}
	}
	if h.Status == unhealthy {
		write(w, http.StatusServiceUnavailable, h)
		return
	}
	if s.store != nil {
		numbers, err := s.look.get(r.Context())
		if err == nil {
			h.DLQ = deepest(numbers)
		}
		if err != nil || h.DLQ.Depth >= DepthThreshold {
			h.Status = degraded
		}
	}
	write(w, http.StatusOK, h)
}

// deepest returns the depth of the queue with the most letters.
func deepest(n nixie.Overview) *depth {
	d := &depth{Threshold: DepthThreshold}
	for i := range n.Queues {
		if at := n.Queues[i].Waiting(); at > d.Depth {
			d.Name, d.Depth = n.Queues[i].Name, at
		}
	}
	return d
}

// write answers with JSON.
func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
