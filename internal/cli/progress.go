package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/nixie-go/nixie/internal/runner"
)

// Intervals of progress: of a bar on a terminal, and of lines elsewhere.
const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
)

// Columns of the bar, and of its share, counts, rate and times.
const (
	barWidth  = 10
	aroundBar = 46
)

// progress shows on standard error how far a run is.
type progress struct {
	out   io.Writer
	room  int // columns for the counts before the bar
	ask   func() runner.Counts
	bar   *progressbar.ProgressBar
	began time.Time
	now   func() time.Time
	stop  chan struct{}
	done  sync.WaitGroup
	once  sync.Once

	line sync.Mutex // held while text is written where the bar stands

	endless bool // there is no total: print a line when a count has changed
	last    runner.Counts
}

func newProgress(s Streams, ask func() runner.Counts, endless bool) *progress {
	columns := s.Columns
	if columns == 0 {
		columns = defaultWidth
	}
	p := &progress{out: s.Err, room: max(columns-barWidth-aroundBar, 0),
		ask: ask, began: s.Now(), now: s.Now, stop: make(chan struct{}), endless: endless}
	every := lineEvery
	if s.ErrTTY && s.Env("TERM") != "dumb" && !endless {
		every = barEvery
		p.bar = progressbar.NewOptions64(1,
			progressbar.OptionSetWriter(s.Err), progressbar.OptionSetWidth(barWidth),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionUseANSICodes(s.Env("NO_COLOR") == ""))
	}
	p.done.Add(1)
	go p.loop(every)
	return p
}

func (p *progress) loop(every time.Duration) {
	defer p.done.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.show()
		}
	}
}

// without removes the bar and writes; the next tick shows the bar again.
func (p *progress) without(write func() error) error {
	p.line.Lock()
	defer p.line.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear() // a display that fails is no reason to stop
	}
	return write()
}

func (p *progress) show() {
	if !p.line.TryLock() {
		return // text is being written, perhaps for long
	}
	defer p.line.Unlock()
	at := p.ask()
	held := ""
	if at.Held != "" {
		held = ", " + at.Held
	}
	if p.endless {
		at.Total, at.Ended = 0, 0
		if at != p.last {
			fmt.Fprintf(p.out, "%d succeeded, %d dead, %d retried%s\n", at.Succeeded, at.Dead, at.Retried, held)
		}
		p.last = at
		return
	}
	if p.bar != nil {
		p.bar.ChangeMax64(max(at.Total, 1))
		p.bar.Describe(cut(fmt.Sprintf("%d dead, %d retried%s", at.Dead, at.Retried, held), p.room))
		_ = p.bar.Set64(min(at.Ended, at.Total)) // a display that fails is no reason to stop
		return
	}
	took := p.now().Sub(p.began).Seconds()
	rate := float64(at.Succeeded+at.Dead) / max(took, 1e-3)
	line := fmt.Sprintf("%d/%d done, %d dead, %d retried, %.0f/s", at.Ended, at.Total, at.Dead, at.Retried, rate)
	if left := at.Total - at.Ended; held == "" && rate > 0 && left > 0 {
		line += ", about " + time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second).String() + " left"
	}
	fmt.Fprintln(p.out, line+held)
}

// end removes the bar.
func (p *progress) end() {
	if p == nil {
		return // none is shown
	}
	p.once.Do(func() { close(p.stop) })
	p.done.Wait()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
