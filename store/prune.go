package store

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// Pruning is one step of removing what is older than its retention.
type Pruning struct {
	Limit  int    // rows to look at; 0 is [DefaultPrune], at most [nixie.MaxBatch]
	Cursor string // where the step before ended; empty at the start
	Resume bool   // begin where the last step with Resume ended, by whomever: for those who do a little now and then
	DryRun bool   // count only
}

// Check sets what was left out, and says what is wrong.
func (p *Pruning) Check() error {
	if p.Limit == 0 {
		p.Limit = DefaultPrune
	}
	if p.Limit < 0 || p.Limit > nixie.MaxBatch {
		return nixie.Errorf(nixie.CodeInvalid, "prune looks at %d rows: give 1 to %d, or 0 for %d", p.Limit, nixie.MaxBatch, DefaultPrune)
	}
	return nil
}

// DefaultPrune is how many rows one call of Prune looks at.
const DefaultPrune = 1_000

// Pruned is what Prune removed.
type Pruned struct {
	Messages int64  // without a letter
	Letters  int64  // with their messages
	Entries  int64  // of audits
	Keys     int64  // of inboxes
	Next     string // cursor of the next step, empty at the end
}

// PrunedLetter is what the audit says of a letter that its retention removed.
func PrunedLetter(kept time.Duration) string {
	return fmt.Sprintf("letter retention of %s is over", kept)
}

// PrunedEntries is what the audit says of its oldest entries when they are gone.
func PrunedEntries(newest int64, kept time.Duration) string {
	return fmt.Sprintf("audit retention of %s is over for entries up to %d", kept, newest)
}
