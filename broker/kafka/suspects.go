package kafka

import (
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// suspects are the first records beyond a committed offset, one of which may have
// made its holders vanish. The group keeps them as metadata of the commit, through
// commits that move on: a holder writes there whom to suspect if it vanishes.
type suspects struct {
	crashes int // holders in a row that vanished with them
	of      int // how many records; 0: nobody is suspected
	alone   int // the last so many of those holders had one record, and nothing else
}

func (s suspects) suspected() bool { return s.of > 0 }

// window is how many of them are run together.
func (s suspects) window(parallel int) int { return min(s.of, lease.GroupSize(parallel, s.crashes)) }

// vanish are the suspects after one more holder, which had a window of them; without
// any it had what one receive brings, about.
func (s suspects) vanish(parallel int) suspects {
	if !s.suspected() {
		return suspects{crashes: 1, of: nixie.MaxBatch}
	}
	next := suspects{crashes: min(s.crashes+1, maxSuspects), of: s.window(parallel)}
	if next.of == 1 {
		next.alone = min(s.alone+1, maxSuspects)
	}
	return next
}

// maxSuspects bounds what is read of metadata that somebody else may have written.
const maxSuspects = 1_000_000

const suspectsFormat = "nixie crashes=%d of=%d alone=%d"

func (s suspects) metadata() string {
	if !s.suspected() {
		return ""
	}
	return fmt.Sprintf(suspectsFormat, s.crashes, s.of, s.alone)
}

// readSuspects reads what metadata wrote; that of others says nothing.
func readSuspects(metadata *string) (s suspects) {
	if metadata == nil {
		return s
	}
	n, err := fmt.Sscanf(*metadata, suspectsFormat, &s.crashes, &s.of, &s.alone)
	if sane := min(s.crashes, s.of) > 0 && max(s.crashes, s.of, s.alone) <= maxSuspects && s.alone >= 0; n < 3 || err != nil || !sane {
		return suspects{}
	}
	return s
}
