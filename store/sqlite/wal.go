package sqlite

import (
	"os"
	"time"
)

// walWatch keeps the WAL small. SQLite starts the WAL afresh when a writer meets no reader; readers
// that always overlap let it grow for ever.
type walWatch struct {
	path  string
	wait  time.Duration // of ordinary transactions
	tryAt int64         // file size at which the next try is due
}

const (
	walLimit = 96 << 20 // bytes; more than journal_size_limit, to which the engine cuts it
	walStep  = 64 << 20 // bytes that it may grow after a try that a long reader made vain
	// walPatience limits how long writers wait for readers to leave the WAL. Readers that come
	// meanwhile read the file itself.
	walPatience = time.Second
)

// restrain makes SQLite start the WAL afresh when it is too large.
func (w *walWatch) restrain(c conn) {
	info, err := os.Stat(w.path)
	if err != nil || info.Size() < walLimit {
		w.tryAt = walLimit
		return // a file system of tests has no such file
	}
	if info.Size() < w.tryAt {
		return
	}
	w.tryAt = info.Size() + walStep
	c.SetBusyTimeout(walPatience)
	defer c.SetBusyTimeout(w.wait)
	_ = c.run("pragma wal_checkpoint(restart)") // the WAL stays valid if this fails
}
