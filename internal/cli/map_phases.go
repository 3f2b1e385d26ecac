package cli

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// phaseShown tells the state of a phase.
type phaseShown struct {
	Phase     string `json:"phase"`
	State     string `json:"state"` // succeeded, dead, discarded or unfinished
	OutOfDate bool   `json:"out_of_date"`
}

// phasesOf returns the phases of a job that have begun. A reduce is out of date once more items
// have succeeded.
func (g *globals) phasesOf(
	ctx context.Context, o *office.Office, of jobFlag, queue string, items *office.QueueView,
) (all []phaseShown, err error) {
	all = []phaseShown{}
	queues, err := g.withPhases(ctx, of, queue)
	if err != nil {
		return nil, err
	}
	for _, name := range queues[1:] {
		last, _, err := o.Messages(ctx, nixie.Filter{Queues: []string{name}}, store.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(last) == 0 {
			continue
		}
		_, phase, _ := mapreduce.PhaseOf(name)
		shown := phaseShown{Phase: phase, State: phaseState(last[0].State)}
		if phase == mapreduce.Reduce && items != nil {
			now := mapreduce.Counts{Total: items.Total, Successful: items.Succeeded}
			shown.OutOfDate = last[0].DedupeKey != now.Key()
		}
		all = append(all, shown)
	}
	return all, nil
}

// phaseState is the word for the state of the message of a phase.
func phaseState(s nixie.State) string {
	switch s {
	case nixie.Succeeded:
		return phaseSucceeded
	case nixie.Dead:
		return phaseDead
	case nixie.Discarded, nixie.Canceled:
		return phaseDiscarded
	}
	return phaseUnfinished
}
