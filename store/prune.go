package store

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// Pruning is one step of [Keeper.Prune].
type Pruning struct {
	Limit  int    // rows to look at; 0 is [DefaultPrune], at most [nixie.MaxBatch]
	Cursor string // Next of the step before; empty at the start
	Resume bool   // continue after the last step with Resume of any process: for workers that prune a little now and then
	DryRun bool   // count only
}

// Check fills in the default and says what is wrong.
func (p *Pruning) Check() error {
	if p.Limit == 0 {
		p.Limit = DefaultPrune
	}
	if p.Limit < 0 || p.Limit > nixie.MaxBatch {
		return nixie.Errorf(nixie.CodeInvalid, "prune looks at %d rows: give 1 to %d, or 0 for %d", p.Limit, nixie.MaxBatch, DefaultPrune)
	}
	return nil
}

// DefaultPrune is the default of Pruning.Limit.
const DefaultPrune = 1_000

// Pruned counts what Prune removed.
type Pruned struct {
	Messages  int64  // without a letter
	Letters   int64  // with their messages
	Entries   int64  // of audits
	Keys      int64  // of inboxes
	Documents int64  // that have expired
	Next      string // cursor of the next step, empty at the end
}

// PrunedLetter returns the reason of the audit entry for a letter that retention removed.
func PrunedLetter(kept time.Duration) string {
	return fmt.Sprintf("letter retention of %s is over", kept)
}

// PrunedEntries returns the reason of the audit entry that follows the removal of the oldest ones.
func PrunedEntries(newest int64, kept time.Duration) string {
	return fmt.Sprintf("audit retention of %s is over for entries up to %d", kept, newest)
}
