package sqlite

import (
	"os"
	"time"
)

// walWatch keeps the log of writes beside the file small. SQLite starts it
// afresh when a writer finds nobody reading; readers that always overlap let it
// grow for ever.
type walWatch struct {
	path  string
	wait  time.Duration // of ordinary transactions
	tryAt int64         // size at which the next try is due
}

const (
	walLimit = 96 << 20 // bytes; more than journal_size_limit, to which the engine cuts it
	walStep  = 64 << 20 // bytes that it may grow after a try that a long reader made vain
	// walPatience is how long writers wait for readers to leave the log.
	// Readers that come meanwhile read the file itself.
	walPatience = time.Second
)

// restrain lets the log start afresh if it has grown too large.
func (w *walWatch) restrain(c conn) {
	info, err := os.Stat(w.path)
	if err != nil || info.Size() < walLimit {
		w.tryAt = walLimit
		return // also in a file system of tests, which has no such file
	}
	if info.Size() < w.tryAt {
		return
	}
	w.tryAt = info.Size() + walStep
	c.SetBusyTimeout(walPatience)
	defer c.SetBusyTimeout(w.wait)
	_ = c.run("pragma wal_checkpoint(restart)") // without success the log is whole all the same
}
