package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie/internal/watchdog"
)

// LevelCritical is the level of the line that a watchdog logs before it ends the process.
const LevelCritical = watchdog.Critical

// silent says which loops are silent for longer than limit allows them.
func (g *Group) silent(limit func(*member) time.Duration) (words []string) {
	now := g.c.Clock()
	for i := range g.members {
		m := &g.members[i]
		d, message := m.silence(now)
		switch {
		case d <= limit(m):
		case message == "":
			words = append(words, fmt.Sprintf("loop %s has not beaten for %s", m.name, d.Round(time.Millisecond)))
		default:
			words = append(words, fmt.Sprintf("loop %s has not beaten for %s, at work on message %s",
				m.name, d.Round(time.Millisecond), message))
		}
	}
	return words
}

// watch looks for loops that are stuck, and ends the process if one is. It never beats for a loop.
func (g *Group) watch(ctx context.Context) {
	w := watchdog.Watchdog{
		Threshold: g.c.Threshold, Interval: g.c.Interval, Logger: g.c.Logger, Dump: g.c.Dump, Kill: g.kill,
		Last:   g.noStop,
		Silent: func() []string { return g.silent(func(*member) time.Duration { return g.c.Threshold }) },
	}
	w.Watch(ctx)
}

// noStop takes back that a loop was told to stop: the end of a stuck process is a crash.
func (g *Group) noStop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for i := range g.members {
		if e, ok := g.members[i].Loop.(interface{ noStop(context.Context) }); ok {
			e.noStop(ctx)
		}
	}
}
