package loop

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the health port. A client that sends or reads slowly is cut off.
const (
	requestWithin  = 5 * time.Second
	maxHeaderBytes = 4 << 10
)

// The words of a health.
const (
	healthy   = "healthy"
	degraded  = "degraded"
	unhealthy = "unhealthy"
)

// health is the body of the answers.
type health struct {
	Status string        `json:"status"`
	Why    []string      `json:"why,omitempty"`    // loops that are not well
	DLQ    *depth        `json:"dlq,omitempty"`    // of the check that is nearest to its threshold, or farthest beyond it
	Checks []checkResult `json:"checks,omitempty"` // those that fail
}

type depth struct {
	Name      string `json:"name"`
	Depth     int    `json:"depth"`
	Threshold int    `json:"threshold"`
}

// fuller reports whether a depth is more of its threshold than another one.
func (d *depth) fuller(than *depth) bool {
	return than == nil || float64(d.Depth)*float64(than.Threshold) > float64(than.Depth)*float64(d.Threshold)
}

type checkResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// Health returns the handler of the health port, to be mounted elsewhere:
//
//	/health/live   200
//	/health/ready  200, or 503 if a loop does not run, or is silent for longer than it may be, or if
//	               a check fails
//
// Everything else is 404. The body is JSON with a status: healthy; degraded, with 200, if the depth
// of a check is at its threshold; unhealthy, with 503. It says why, has the depth of the check that
// is the greatest part of its threshold, and names the checks that fail.
func (g *Group) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		h, code := health{Status: healthy}, http.StatusOK
		switch r.URL.Path {
		case "/health/live":
		case "/health/ready":
			if h = g.readiness(r.Context()); h.Status == unhealthy {
				code = http.StatusServiceUnavailable
			}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(h) // the client may be gone
	})
}

// readiness asks the loops and all checks.
func (g *Group) readiness(ctx context.Context) health {
	h := health{Status: healthy, Why: g.Unready()}
	depths, errs := make([]depth, len(g.checks)), make([]error, len(g.checks))
	var asking sync.WaitGroup
	for i, c := range g.checks {
		asking.Go(func() {
			depths[i].Name = c.Name
			depths[i].Depth, depths[i].Threshold, errs[i] = c.answer(ctx)
		})
	}
	asking.Wait()
	for i := range depths {
		d := &depths[i]
		switch {
		case errs[i] != nil:
			h.Checks = append(h.Checks, checkResult{Name: d.Name, Error: errs[i].Error()})
		case d.fuller(h.DLQ):
			h.DLQ = d
		}
	}
	switch {
	case len(h.Why) > 0 || len(h.Checks) > 0:
		h.Status = unhealthy
	case h.DLQ != nil && h.DLQ.Depth >= h.DLQ.Threshold:
		h.Status = degraded
	}
	return h
}

// Unready says which loops do not run, or are silent for longer than they may be. It is empty while
// all are well.
func (g *Group) Unready() (why []string) {
	for _, m := range g.members {
		if state := m.now(); state != running {
			why = append(why, "loop "+m.name+" is "+string(state))
		}
	}
	return append(why, g.silent(func(m *member) time.Duration { return m.mayRest })...)
}

// serve answers requests until ctx ends.
func (g *Group) serve(ctx context.Context) {
	server := &http.Server{
		Handler: g.Health(), ReadHeaderTimeout: requestWithin, ReadTimeout: requestWithin, WriteTimeout: requestWithin,
		IdleTimeout: requestWithin, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // answers take no time
	if err := server.Serve(g.c.Health); ctx.Err() == nil {
		g.c.Logger.Error("the health port has closed", "error", err.Error())
	}
}
