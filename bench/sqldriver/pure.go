//go:build !cgo

package sqldriver

import (
	"fmt"

	_ "modernc.org/sqlite" // registers itself
)

const name = "sqlite"

// Driver is the name of the driver, for the reader.
const Driver = "modernc.org/sqlite (no cgo)"

func source(path string, o Options) string {
	return fmt.Sprintf("file:%s?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)"+
		"&_pragma=synchronous(%s)&_txlock=%s",
		path, o.Synchronous, lock(o))
}
