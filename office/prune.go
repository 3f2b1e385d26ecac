package office

import (
	"context"

	"github.com/nixie-go/nixie/store"
)

// PruneView counts the rows that retention removed. Prune prints it.
type PruneView struct {
	DryRun   bool  `json:"dry_run"`
	Messages int64 `json:"messages"`      // ended, without a letter
	Letters  int64 `json:"letters"`       // resolved or discarded, with their messages
	Entries  int64 `json:"audit_entries"` // the oldest of each queue
	Keys     int64 `json:"inbox_keys"`    // idempotency keys of callers' transactions
}

// Prune removes rows that are older than the retention of their queue, step by step. With dry it
// only counts them. When ctx ends it returns the counts so far.
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
