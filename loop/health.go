package loop

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// Limits of the health port. A client that sends or reads slowly is cut off.
const (
	requestWithin  = 5 * time.Second
	maxHeaderBytes = 4 << 10
)

// health is the body of the answers.
type health struct {
	Status string   `json:"status"`
	Why    []string `json:"why,omitempty"`
}

// Health returns the handler of the health port, to be mounted elsewhere:
//
//	/health/live   200
//	/health/ready  200, or 503 if a loop does not run, or is silent for longer than it may be
//
// Everything else is 404. The body is JSON with a status, healthy or unhealthy, and why.
func (g *Group) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		h, code := health{Status: "healthy"}, http.StatusOK
		switch r.URL.Path {
		case "/health/live":
		case "/health/ready":
			if h.Why = g.Unready(); len(h.Why) > 0 {
				h.Status, code = "unhealthy", http.StatusServiceUnavailable
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
