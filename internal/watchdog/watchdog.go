// Package watchdog ends this process when a part of it is stuck, so that what starts processes
// starts it again.
package watchdog

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"
)

// Critical is the level of the line that is logged before the process ends.
const Critical = slog.LevelError + 4

// Limits of the last words of a process.
const (
	lastWords = 5 * time.Second // what is logged or written later is lost: the watchdog must not be stuck too
	maxStacks = 16 << 20
)

// late is the number of intervals between two looks after which the process was stopped meanwhile.
const late = 2

// Watchdog looks for parts of this process that are stuck. All fields but Last and Kill are
// required.
type Watchdog struct {
	Threshold time.Duration   // silence that is taken for the end
	Interval  time.Duration   // between two looks, in real time
	Silent    func() []string // names the parts that are silent for longer than Threshold
	Logger    *slog.Logger
	Dump      io.Writer // gets the stacks of all goroutines
	Last      func()    // called before the stacks are written; nil does nothing
	Kill      func()    // ends the process; nil is SIGKILL
}

// Watch looks until ctx ends. It never speaks for a part. If the process was stopped, and goes on,
// each part has Threshold again to be heard.
func (w *Watchdog) Watch(ctx context.Context) {
	tick := time.NewTicker(w.Interval)
	defer tick.Stop()
	var last, from time.Time // the look before, and when a look counts again
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now() // real time, as that of the ticks
		if !last.IsZero() && now.Sub(last) > late*w.Interval {
			from = now.Add(w.Threshold)
		}
		last = now
		if now.Before(from) {
			continue
		}
		if silent := w.Silent(); len(silent) > 0 {
			w.end(silent)
			return
		}
	}
}

// end says what is stuck and ends the process.
func (w *Watchdog) end(silent []string) {
	said := make(chan struct{})
	go func() { // the logger may be what is stuck
		defer close(said)
		w.say(silent)
	}()
	patience := time.NewTimer(lastWords)
	defer patience.Stop()
	select {
	case <-said:
	case <-patience.C:
	}
	if w.Kill != nil {
		w.Kill()
		return
	}
	killProcess()
}

func (w *Watchdog) say(silent []string) {
	w.Logger.Log(context.Background(), Critical, "watchdog ends the process", "stalled", silent, "threshold", w.Threshold)
	if w.Last != nil {
		w.Last()
	}
	stacks := make([]byte, 1<<20)
	n := runtime.Stack(stacks, true)
	for n == len(stacks) && n < maxStacks {
		stacks = make([]byte, 2*n)
		n = runtime.Stack(stacks, true)
	}
	_, _ = w.Dump.Write(stacks[:n]) // an error could be told to no one
}

// killProcess ends this process at once and without its help: what a stuck process does at its end
// may be stuck as well.
func killProcess() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // it does not come back
	}
}
