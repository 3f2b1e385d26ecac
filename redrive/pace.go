package redrive

import (
	"math"
	"time"
)

// maxLag limits how far behind its schedule an operation may fall and still catch up. After a
// longer stall the schedule starts anew, so that the missed letters do not hit the queue at once.
const maxLag = time.Second

// pace is a schedule: letter i may go at start + i/rate, so that after t no more
// than rate·t + 1 have gone.
type pace struct {
	rate  float64 // per second; 0 is no limit
	start time.Time
	gone  int // since start
}

func newPace(rate float64, now time.Time) *pace { return &pace{rate: rate, start: now} }

// due returns how many letters may go now, at most most. If none may, it returns how long to wait
// for the next one.
func (p *pace) due(now time.Time, most int) (n int, later time.Duration) {
	if p.rate == 0 {
		return most, 0
	}
	at := p.start.Add(p.after(p.gone))
	switch late := now.Sub(at); {
	case late < 0:
		return 0, -late
	case late > maxLag:
		p.start, p.gone = now, 0
	}
	allowed := int(math.Floor(now.Sub(p.start).Seconds()*p.rate+1e-9)) + 1
	return max(1, min(most, allowed-p.gone)), 0
}

// took counts letters that went.
func (p *pace) took(n int) { p.gone += n }

// after returns the time of letter i in the schedule, since its start.
func (p *pace) after(i int) time.Duration {
	return time.Duration(math.Min(math.Ceil(float64(i)/p.rate*float64(time.Second)), math.MaxInt64/2))
}
