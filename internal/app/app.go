// Package app builds the running system from a configuration. It is the only
// place that knows which stores and brokers exist.
package app

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Options of opening a store.
type Options struct {
	MustExist bool             // do not create it
	Owner     string           // shown as the holder of leases
	Clock     func() time.Time // default time.Now
}

// OpenStore opens the store that a URL names: sqlite:///absolute/path,
// sqlite://relative/path, or postgres://user@host/database with what else the
// driver reads, and nixie_schema for another schema than nixie.
func OpenStore(rawURL string, opts Options) (store.Store, error) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store %q is not a URL: give one like sqlite:///path/to/file", redacted(rawURL))
	}
	switch scheme {
	case "sqlite":
		return openSQLite(rest, opts)
	case "postgres", "postgresql":
		return openPostgres(rawURL, opts)
	}
	return nil, nixie.Errorf(nixie.CodeInvalid, "store %q: scheme %q is unknown, known are sqlite and postgres", redacted(rawURL), scheme)
}

// schemaParameter is the parameter of a PostgreSQL URL that names the schema.
const schemaParameter = "nixie_schema"

func openPostgres(rawURL string, opts Options) (store.Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store is no URL: give one like postgres://user@host/database")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "parameters of the store's URL: %w", err)
	}
	schema := query.Get(schemaParameter)
	query.Del(schemaParameter)
	u.RawQuery = query.Encode()
	return postgres.Open(context.Background(), u.String(), postgres.Options{Schema: schema, MustExist: opts.MustExist, Owner: opts.Owner, Clock: opts.Clock})
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
