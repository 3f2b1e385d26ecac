package kafka

import (
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// suspects are the first records after a committed offset, one of which may have killed its
// holders. The group keeps them as metadata of the commit. A holder writes there which records to
// suspect if it vanishes.
type suspects struct {
	crashes int // holders in a row that vanished with them
	count   int // number of records; 0: none is suspected
	alone   int // how many of the last holders had only one record in hand
}

func (s suspects) suspected() bool { return s.count > 0 }

// window returns how many suspects run together.
func (s suspects) window(parallel int) int { return min(s.count, lease.GroupSize(parallel, s.crashes)) }

// afterCrash returns the suspects if this holder vanishes too. It had one window of them in hand,
// or without suspects about the records of one receive.
func (s suspects) afterCrash(parallel int) suspects {
	if !s.suspected() {
		return suspects{crashes: 1, count: nixie.MaxBatch}
	}
	next := suspects{crashes: min(s.crashes+1, maxSuspects), count: s.window(parallel)}
	if next.count == 1 {
		next.alone = min(s.alone+1, maxSuspects)
	}
	return next
}

// maxSuspects limits what is read from metadata, which another program may have written.
const maxSuspects = 1_000_000

const suspectsFormat = "nixie crashes=%d of=%d alone=%d"

func (s suspects) metadata() string {
	if !s.suspected() {
		return ""
	}
	return fmt.Sprintf(suspectsFormat, s.crashes, s.count, s.alone)
}

// readSuspects reads what metadata wrote. It returns none for metadata of other programs.
func readSuspects(metadata *string) (s suspects) {
	if metadata == nil {
		return s
	}
	n, err := fmt.Sscanf(*metadata, suspectsFormat, &s.crashes, &s.count, &s.alone)
	if sane := min(s.crashes, s.count) > 0 && max(s.crashes, s.count, s.alone) <= maxSuspects && s.alone >= 0; n < 3 || err != nil ||
		!sane {
		return suspects{}
	}
	return s
}
