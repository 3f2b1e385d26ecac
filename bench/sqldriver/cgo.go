//go:build cgo

package sqldriver

import (
	"fmt"

	_ "github.com/mattn/go-sqlite3" // registers itself
)

const name = "sqlite3"

// Driver is the name of the driver, for the reader.
const Driver = "mattn/go-sqlite3 (cgo)"

func source(path string, o Options) string {
	return fmt.Sprintf("file:%s?_journal=WAL&_timeout=5000&_fk=true&_synchronous=%s&_txlock=%s", path, o.Synchronous, lock(o))
}
