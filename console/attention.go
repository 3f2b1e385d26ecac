package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie/office"
)

// alert is one thing that needs attention. It is shown as long as its cause lasts.
type alert struct {
	Rank        rank
	Tone        string
	Title, Text string
	To          string // the page to look at
	Since       time.Time
}

// rank orders what needs attention, worst first.
type rank int

const (
	damaged rank = iota // the store may lose what it was given
	away                // the store, or a service that workers need, does not take more
	blocked             // streams wait behind dead messages
	fresh               // causes that are new, those of most letters first
	others
)

// ranks are those of what makes no progress.
var ranks = map[string]rank{"breaker": away, "blocked": blocked}

// problemLooks are those of what is wrong with a store.
var problemLooks = map[office.Problem]struct {
	rank rank
	tone string
}{
	office.ProblemDurability: {damaged, "bad"}, office.ProblemFull: {away, "bad"}, office.ProblemFilling: {others, "wait"},
	office.ProblemClock: {others, "wait"},
}

// noticed returns since when the console knows of problems, whose beginning is not recorded.
func (c *console) noticed(problems []office.HealthProblem) map[office.Problem]time.Time {
	c.noted.mu.Lock()
	defer c.noted.mu.Unlock()
	since := map[office.Problem]time.Time{}
	for _, p := range problems {
		since[p.Kind] = c.Clock()
		if at, known := c.noted.since[p.Kind]; known {
			since[p.Kind] = at
		}
	}
	c.noted.since = since
	return maps.Clone(since)
}

// noted has since when the console knows of problems that last.
type noted struct {
	mu    sync.Mutex
	since map[office.Problem]time.Time
}

// order brings what needs attention into its order, and leaves out what is too many: causes were
// chosen before.
func (d *officeData) order() {
	slices.SortStableFunc(d.Attention, func(a, b alert) int { return cmp.Compare(a.Rank, b.Rank) })
	stops := 0
	d.Attention = slices.DeleteFunc(d.Attention, func(a alert) bool {
		if a.isCause() {
			return false
		}
		stops++
		return stops > maxStops
	})
	d.Stops = max(0, stops-maxStops)
}

// isCause reports whether an alert is about a cause of letters.
func (a *alert) isCause() bool { return a.Title == titleNew || a.Title == titleGrowing }

// Titles of causes.
const (
	titleNew     = "new"
	titleGrowing = "growing"
)

// addStops adds what is wrong with the store, and what makes no progress: leases, queues, streams
// and operations.
func (c *console) addStops(ctx context.Context, queues []office.QueueInfo, d *officeData) error {
	stalls, problems, err := c.office.Attention(ctx, queues)
	if err != nil {
		return err
	}
	since := c.noticed(problems)
	for _, p := range problems {
		look := problemLooks[p.Kind]
		d.Attention = append(d.Attention, alert{
			Rank: look.rank, Tone: look.tone, Title: string(p.Kind), Text: p.What + ": " + p.Fix, To: c.link("settings"),
			Since: since[p.Kind],
		})
	}
	for _, s := range stalls {
		at, known := ranks[s.What]
		if !known {
			at = others
		}
		d.Attention = append(d.Attention, alert{
			Rank: at, Tone: tone(s.What), Title: s.What, Text: s.Queue + ": " + s.Text, Since: s.Since.Time,
			To: c.link("queue", "name", s.Queue),
		})
	}
	return c.addUnfinished(ctx, d)
}

// moves is the time since the last letter in which an operation is taken for one that runs.
const moves = time.Minute

// addUnfinished adds operations that have stopped with letters to go, of the newest ones. One that
// moves letters runs, here or in another program. A selection that a dry run kept has not begun.
func (c *console) addUnfinished(ctx context.Context, d *officeData) error {
	list, _, err := c.office.Operations(ctx, office.Page{Limit: operationsLooked})
	if err != nil {
		return err
	}
	for i := range list {
		op, state := &list[i], c.runs.of(list[i].ID)
		kept := op.Guarded && op.Pending == op.Selected
		runs := state.going || state.ended == "" && c.Clock().Sub(op.ChangedAt) < moves
		if op.Pending == 0 || kept || runs {
			continue
		}
		if waits, err := c.office.Waits(ctx, op); err != nil || !waits {
			if err != nil {
				return err
			}
			continue
		}
		d.Attention = append(d.Attention, alert{
			Rank: others, Tone: "wait", Title: "unfinished", Since: op.CreatedAt, To: c.link("operation/" + op.ID.String()),
			Text: fmt.Sprintf("%s of %s to go: %s by %s, %s", number(op.Pending), plural(op.Selected, "letter"), op.Event, op.Actor,
				op.Reason),
		})
	}
	return nil
}
