package office

import (
	"context"

	"github.com/nixie-go/nixie/store"
)

// PruneView is what outlived its retention: what prune prints.
type PruneView struct {
	DryRun   bool  `json:"dry_run"`
	Messages int64 `json:"messages"`      // ended, without a letter
	Letters  int64 `json:"letters"`       // resolved or discarded, with their messages
	Entries  int64 `json:"audit_entries"` // the oldest of each queue
	Keys     int64 `json:"inbox_keys"`    // that transactions were told once
}

// Prune removes what is older than the retention of its queue, step by step, or
// only counts it. When ctx ends the view says what was removed by then.
func (o *Office) Prune(ctx context.Context, dry bool) (PruneView, error) {
	total := PruneView{DryRun: dry}
	for cursor := ""; ; {
		done, err := o.store.Prune(ctx, store.Pruning{Cursor: cursor, DryRun: dry})
		total.Messages += done.Messages
		total.Letters += done.Letters
		total.Entries += done.Entries
		total.Keys += done.Keys
		if cursor = done.Next; err != nil || cursor == "" {
			return total, err
		}
	}
}
