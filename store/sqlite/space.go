package sqlite

import (
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

// spaceWatch keeps a reserve of free space. Below it the store refuses new messages, so that
// messages in hand can still be settled.
type spaceWatch struct {
	folder  string
	reserve int64 // −1: none
	askedAt atomic.Int64
	free    atomic.Int64
}

// spaceEvery is the pause between two questions to the disk.
const spaceEvery = int64(time.Second)

// check refuses new messages of a given size if they would use the reserve.
func (w *spaceWatch) check(now int64, size int) error {
	if w.reserve < 0 {
		return nil
	}
	if last := w.askedAt.Load(); now-last >= spaceEvery || now < last || last == 0 {
		free, err := freeBytes(w.folder)
		if err != nil {
			return nil // a write to the disk fails when it is full
		}
		w.free.Store(free)
		w.askedAt.Store(now)
	}
	if free := w.free.Load(); free-int64(size) < w.reserve {
		return nixie.Errorf(nixie.CodeLimit,
			"disk of the store has %d MiB free, %d MiB are kept in reserve for work under way: free some space, nothing was enqueued",
			free>>20, w.reserve>>20)
	}
	return nil
}
