// Package app builds the running system from a configuration. It is the only
// place that knows which stores and brokers exist.
package app

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Options of opening a store.
type Options struct {
	MustExist bool             // do not create it
	Owner     string           // shown as the holder of leases
	Clock     func() time.Time // default time.Now
}

// OpenStore opens the store that a URL names: sqlite:///absolute/path or
// sqlite://relative/path.
func OpenStore(rawURL string, opts Options) (store.Store, error) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store %q is not a URL: give one like sqlite:///path/to/file", redacted(rawURL))
	}
	switch scheme {
	case "sqlite":
		return openSQLite(rest, opts)
	}
	return nil, nixie.Errorf(nixie.CodeInvalid, "store %q: scheme %q is unknown, known is sqlite", redacted(rawURL), scheme)
}

func openSQLite(path string, opts Options) (store.Store, error) {
	if path == "" {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store has no path: give one like sqlite:///path/to/file")
	}
	if unescaped, err := url.PathUnescape(path); err == nil && strings.Contains(path, "%") {
		path = unescaped
	}
	if !opts.MustExist {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, nixie.Errorf(nixie.CodeUnavailable, "folder of the store: %w", err)
		}
	}
	return sqlite.Open(path, sqlite.Options{MustExist: opts.MustExist, Owner: opts.Owner, Clock: opts.Clock})
}

// redacted hides a password in a URL that is shown.
func redacted(rawURL string) string {
	if u, err := url.Parse(rawURL); err == nil {
		return u.Redacted()
	}
	return "(unreadable)"
}

// SQLiteVersion is the version of SQLite in this program.
func SQLiteVersion() string { return sqlite.EngineVersion() }
