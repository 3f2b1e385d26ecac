package runner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/worker"
)

// End tells how work ended.
type End struct {
	Ended string `json:"ended"`
	Why   string `json:"why"` // it stopped by itself; empty otherwise
}

// Values of [End].Ended.
const (
	EndDone        = "done"        // nothing is left, or a caller ended work that has no end
	EndInterrupted = "interrupted" // a caller ended it, and something is left
	EndStopped     = "stopped"     // an item, a paused queue or a fault stopped it
	EndStopAfter   = "stop-after"  // too much died: [Config.StopAfter]
	EndHaltAfter   = "halt-after"  // nothing succeeded: [Config.HaltAfter]
	EndHeld        = "held"        // a breaker holds back what is left of the queues
)

// ending is an error that ends the work in a way of its own.
type ending struct{ ended, why string }

func (e *ending) Error() string { return e.why }

// end tells how the work ended.
func (r *Runner) end(interrupted bool) End {
	var own *ending
	switch why := r.whyHalted(); {
	case errors.As(why, &own):
		return End{own.ended, own.why}
	case why != nil:
		return End{EndStopped, why.Error()}
	case interrupted:
		return End{Ended: EndInterrupted}
	}
	return End{Ended: EndDone}
}

// checkHalt ends the work if its worker ended because nothing succeeded.
func (r *Runner) checkHalt(err error) error {
	var halted *worker.HaltedError
	if !errors.As(err, &halted) {
		return err
	}
	r.stop(&ending{EndHaltAfter, halted.Error() + "; repair it and run the line again"})
	return nil
}

// StopAfter ends a job when too many of the items that ended in this run died. What earlier runs
// did does not count: their cause is usually fixed. The zero value ends none.
type StopAfter struct {
	Dead  int64   // this many; 0 is any number
	Share float64 // more than this part of at least stopLeast, from 0 to 1; 0 is any part
}

// stopLeast items have to end before a share counts: the first ones prove nothing.
const stopLeast = 10

// reached reports whether too many of the ended items are dead.
func (s StopAfter) reached(dead, ended int64) bool {
	return s.Dead > 0 && dead >= s.Dead || s.Share > 0 && ended >= stopLeast && redrive.Exceeds(dead, ended, s.Share)
}

func (s StopAfter) String() string {
	var both []string
	if s.Dead > 0 {
		both = append(both, strconv.FormatInt(s.Dead, 10))
	}
	if s.Share > 0 {
		both = append(both, strconv.FormatFloat(100*s.Share, 'g', 4, 64)+"%")
	}
	return strings.Join(both, " and ")
}

// checkDead ends the run when too many of its items have died. Commands that run may finish.
func (r *Runner) checkDead() {
	dead := r.count.buried.Load()
	ended := dead + r.count.succeeded.Load() + r.count.discarded.Load()
	if r.c.StopAfter.reached(dead, ended) {
		r.stop(&ending{EndStopAfter, fmt.Sprintf("%d of %d that ended in this run died, and --stop-after is %s",
			dead, ended, r.c.StopAfter)})
	}
}
