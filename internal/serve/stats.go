package serve

import (
	"net/http"
	"time"
)

// stats is the body of /stats.json.
type stats struct {
	Queues map[string]queueStats `json:"queues"`
	All    queueStats            `json:"all"`
}

// queueStats says how much work a queue has for workers.
type queueStats struct {
	Queued  int64   `json:"queued"`  // messages that a worker could claim now
	Running int64   `json:"running"` // leased messages
	Oldest  float64 `json:"oldest"`  // seconds since when the longest queued message is due; 0 without one
}

// stats answers with the work of each queue, in a form that the metrics-api scaler of KEDA reads.
func (s *Server) stats(w http.ResponseWriter, r *http.Request) {
	if s.store == nil {
		http.NotFound(w, r)
		return
	}
	numbers, err := s.look.get(r.Context())
	if err != nil {
		write(w, http.StatusServiceUnavailable, struct {
			Error string `json:"error"`
		}{err.Error()})
		return
	}
	body := stats{Queues: make(map[string]queueStats, len(numbers.Queues))}
	for i := range numbers.Queues {
		q := &numbers.Queues[i]
		at := queueStats{Queued: q.Ready, Running: q.Leased}
		if !q.OldestReady.IsZero() {
			at.Oldest = max(s.c.Clock().Sub(q.OldestReady), 0).Round(time.Millisecond).Seconds()
		}
		body.Queues[q.Name] = at
		body.All.Queued += at.Queued
		body.All.Running += at.Running
		body.All.Oldest = max(body.All.Oldest, at.Oldest)
	}
	write(w, http.StatusOK, body)
}
