package console

import (
	"fmt"
	"sync"
	"time"

	"github.com/nixie-go/nixie/office"
)

// How the console measures what comes into queues and what leaves them: stores count both for good,
// so two looks at them make a rate.
const (
	flowEvery  = 10 * time.Second // at least, between two looks that are kept
	flowLooks  = 7                // that are kept: one minute
	flowQueues = 1_000            // queues that are measured
)

// flow keeps some looks at the queues, oldest first. Every page that reads the queues adds one, so
// a console that is not watched measures nothing.
type flow struct {
	mu    sync.Mutex
	looks []look
}

// look has the numbers of queues at a time.
type look struct {
	at   time.Time
	ends map[string][2]int64 // messages that were ever enqueued, and that ended without dying
}

// rates say how a queue fares.
type rates struct {
	In, Out float64 // messages per minute that were enqueued, and that ended without dying
	Over    time.Duration
}

// Known reports whether there were two looks.
func (r rates) Known() bool { return r.Over > 0 }

func (r rates) String() string {
	if !r.Known() {
		return "–"
	}
	return fmt.Sprintf("%s / %s", perMinute(r.In), perMinute(r.Out))
}

// perMinute writes a rate: small ones with a digit more.
func perMinute(r float64) string {
	if r > 0 && r < 10 {
		return fmt.Sprintf("%.1f", r)
	}
	return number(int64(r + 0.5))
}

// add keeps a look, unless the last one was a moment ago.
func (f *flow) add(queues []office.QueueInfo, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.looks); n > 0 && now.Sub(f.looks[n-1].at) < flowEvery {
		return
	}
	l := look{now, map[string][2]int64{}}
	for i := range queues[:min(len(queues), flowQueues)] {
		q := &queues[i]
		l.ends[q.Name] = ends(q)
	}
	if f.looks = append(f.looks, l); len(f.looks) > flowLooks {
		f.looks = f.looks[1:]
	}
}

func ends(q *office.QueueInfo) [2]int64 {
	return [2]int64{q.Total, q.Succeeded + q.Discarded + q.Canceled}
}

// of returns the rates of a queue between the oldest look that is not too old, and now.
func (f *flow) of(q *office.QueueInfo, now time.Time) rates {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.looks {
		before, known := l.ends[q.Name]
		over := now.Sub(l.at)
		if !known || over > flowEvery*flowLooks || over < flowEvery/2 {
			continue
		}
		after := ends(q)
		return rates{float64(after[0]-before[0]) / over.Minutes(), float64(after[1]-before[1]) / over.Minutes(), over}
	}
	return rates{}
}
