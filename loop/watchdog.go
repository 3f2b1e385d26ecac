package loop

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"
)

// LevelCritical is the level of the line that a watchdog logs before it ends the process.
const LevelCritical = slog.LevelError + 4

// Limits of the last words of a process.
const (
	lastWords = 5 * time.Second // what is logged or written later is lost: the watchdog must not be stuck too
	maxStacks = 16 << 20
)

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
	tick := time.NewTicker(g.c.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if words := g.silent(func(*member) time.Duration { return g.c.Threshold }); len(words) > 0 {
			said := make(chan struct{})
			go func() { // the logger may be what is stuck
				defer close(said)
				g.lastWords(words)
			}()
			patience := time.NewTimer(lastWords)
			select {
			case <-said:
			case <-patience.C:
			}
			g.kill()
			return
		}
	}
}

func (g *Group) lastWords(words []string) {
	g.c.Logger.Log(context.Background(), LevelCritical, "watchdog ends the process", "stalled", words, "threshold", g.c.Threshold)
	stacks := make([]byte, 1<<20)
	n := runtime.Stack(stacks, true)
	for n == len(stacks) && n < maxStacks {
		stacks = make([]byte, 2*n)
		n = runtime.Stack(stacks, true)
	}
	_, _ = g.c.Dump.Write(stacks[:n]) // an error could be told to no one
}

// killProcess ends this process at once and without its help: what a stuck process does at its end
// may be stuck as well.
func killProcess() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // it does not come back
	}
}
