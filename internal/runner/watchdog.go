package runner

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nixie-go/nixie/internal/watchdog"
)

// pulse is the last beat of the worker.
type pulse struct {
	clock func() time.Time

	mu   sync.Mutex
	last time.Time
}

func (p *pulse) beat() {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

// silence returns the time since the last beat.
func (p *pulse) silence() time.Duration {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.last)
}

// looks counts those of the watchdog in the time of silence that it allows.
const looks = 12

// watchWorker ends this process when the worker does not go on. A worker that ends is not watched:
// its commands may take as long as they like.
func (r *Runner) watchWorker(ctx context.Context) {
	w := watchdog.Watchdog{
		Threshold: r.c.Watchdog, Interval: r.c.Watchdog / looks, Logger: slog.New(warner{r.c.Warn}), Dump: os.Stderr,
		Silent: func() []string {
			if d := r.heard.silence(); d > r.c.Watchdog {
				return []string{fmt.Sprintf("the worker has not gone on for %s", d.Round(time.Millisecond))}
			}
			return nil
		},
	}
	w.Watch(ctx)
}
