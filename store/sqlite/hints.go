package sqlite

import (
	"context"
	"net/url"
	"os"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/nixie-go/nixie"
)

// mostHints limits how many names are read, the newest first.
const mostHints = 2_000

// hintWait limits how long a hint waits for a lock.
const hintWait = 200 * time.Millisecond

// hintQueries read a name and what it means.
var hintQueries = map[string]string{
	"queue":       "select name, '' from queue order by n desc limit ?1",
	"id":          "select id, signature from letter order by pos desc limit ?1",
	"message":     "select id, coalesce(key, type, '') from message order by pos desc limit ?1",
	"operation":   "select id, event || ': ' || reason from operation order by n desc limit ?1",
	"key":         "select key, '' from message where key is not null order by pos desc limit ?1",
	"stream":      "select name, '' from stream order by n desc limit ?1",
	"type":        "select distinct type, '' from facet limit ?1",
	"fingerprint": "select distinct fingerprint, signature from facet limit ?1",
}

// Hints calls yield with names of one kind in the file at path, for a shell that completes a word:
// of queues, types, streams, fingerprints, and IDs of letters (id), messages and operations. It
// does not open the file as a store: it makes and writes nothing, and leaves files of other builds
// alone.
func Hints(ctx context.Context, path, kind string, yield func(name, meaning string)) error {
	query, known := hintQueries[kind]
	if !known {
		return nixie.Errorf(nixie.CodeInvalid, "no hints for %q", kind)
	}
	options := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		options.Set("immutable", "1") // a plain read-only connection would leave files next to it
	}
	raw, err := sqlite.OpenConn(fileURI(path, options, ""), sqlite.OpenReadOnly|sqlite.OpenURI)
	if err != nil {
		return explain(path, err)
	}
	c := conn{raw}
	defer c.Close() //nolint:errcheck // nothing was written
	c.SetBusyTimeout(hintWait)
	c.SetInterrupt(ctx.Done())
	if have, err := schemaOf(c, path); err != nil || have != schemaVersion {
		return explain(path, err)
	}
	return explain(path, c.each(query, func(row rows) error {
		name := row.ColumnText(0)
		if strings.HasPrefix(query, "select id,") {
			name = columnID(row, 0).String()
		}
		yield(name, row.ColumnText(1))
		return nil
	}, mostHints))
}
