// Package app builds the running system from a configuration. Only this package knows which stores
// and brokers exist.
package app

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/itemdir"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Options configure the opening of a store.
type Options struct {
	MustExist bool             // do not create a file
	Owner     string           // shown as the holder of leases
	Clock     func() time.Time // default time.Now
	Warn      func(error)      // gets problems that stop no operation
	Made      func()           // is called after a new file was made; may be nil
	Observer  *nixie.Observer  // hears what the store accepts, moves and removes; may be nil
}

// OpenStore opens the store that a URL names:
//
//	sqlite:///absolute/path        a file
//	sqlite://relative/path         a file
//	postgres://user@host/database  with the parameters of the driver, and nixie_schema
//	itemdir:path                   a folder of dead letter items of MapReduce jobs, read-only
func OpenStore(rawURL string, opts Options) (store.Store, error) {
	st, err := open(rawURL, opts)
	if err != nil {
		return nil, err
	}
	return store.Observe(st, opts.Observer), nil
}

func open(rawURL string, opts Options) (store.Store, error) {
	if folder, is := ItemFolder(rawURL); is {
		return openItems(folder, opts)
	}
	rest, isFile, err := splitURL(rawURL)
	if err != nil {
		return nil, err
	}
	if isFile {
		return openSQLite(rest, opts)
	}
	return postgres.Open(context.Background(), rawURL, postgres.Options{Owner: opts.Owner, Clock: opts.Clock, Warn: opts.Warn})
}

// SchemaOf returns the schema of the store that a URL names. It opens nothing.
func SchemaOf(rawURL string) (store.Schema, error) {
	if folder, is := ItemFolder(rawURL); is {
		return nil, nixie.Errorf(nixie.CodeUnavailable, "%s is a folder of items, which has no schema", folder)
	}
	rest, isFile, err := splitURL(rawURL)
	if err != nil {
		return nil, err
	}
	if isFile {
		path, err := filePath(rest)
		if err != nil {
			return nil, err
		}
		return sqlite.NewSchema(path)
	}
	return postgres.NewSchema(rawURL, postgres.Options{})
}

// splitURL reports whether a URL names a file, and returns the part after its scheme.
func splitURL(rawURL string) (rest string, isFile bool, err error) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	switch {
	case !found:
		return "", false, nixie.Errorf(nixie.CodeInvalid, "store %q is not a URL: give one like sqlite:///path/to/file or postgres://host/database, or a file that ends in .db",
			redacted(rawURL))
	case scheme == "sqlite":
		return rest, true, nil
	case scheme == "postgres", scheme == "postgresql":
		return rest, false, nil
	}
	return "", false,
		nixie.Errorf(nixie.CodeInvalid, "store %q: scheme %q is unknown, known are sqlite, postgres and itemdir", redacted(rawURL), scheme)
}

// ItemFolder returns the path of a folder of items, if the URL names one.
func ItemFolder(rawURL string) (folder string, is bool) {
	rest, is := strings.CutPrefix(rawURL, "itemdir:")
	return strings.TrimPrefix(rest, "//"), is
}

func openItems(folder string, opts Options) (store.Store, error) {
	if folder == "" {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store has no path: give one like itemdir:path/to/folder")
	}
	return itemdir.Open(folder, opts.Clock)
}

func filePath(rest string) (string, error) {
	if rest == "" {
		return "", nixie.Errorf(nixie.CodeInvalid, "store has no path: give one like sqlite:///path/to/file")
	}
	if unescaped, err := url.PathUnescape(rest); err == nil && strings.Contains(rest, "%") {
		rest = unescaped
	}
	return rest, nil
}

func openSQLite(rest string, opts Options) (store.Store, error) {
	path, err := filePath(rest)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if !opts.MustExist {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, nixie.Errorf(nixie.CodeUnavailable, "folder of the store: %w: set NIXIE_STORE, or give --store sqlite:///path/to/file", err)
		}
	}
	st, err := sqlite.Open(path, sqlite.Options{MustExist: opts.MustExist, Owner: opts.Owner, Clock: opts.Clock})
	if err != nil {
		return nil, err
	}
	if isNew && opts.Made != nil {
		opts.Made()
	}
	return st, nil
}

var passwords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(://[^/?#@:]*:)[^/?#@]*(@)|([?&](?:ssl)?password=)[^&#]*`)
})

// Shown returns the URL of a store with *** instead of its passwords.
func Shown(rawURL string) string { return passwords().ReplaceAllString(rawURL, "${1}${3}***${2}") }

// redacted returns Shown for a URL that can be parsed: elsewhere a password may stand anywhere.
func redacted(rawURL string) string {
	if _, err := url.Parse(rawURL); err != nil {
		return "(unreadable)"
	}
	return Shown(rawURL)
}

// SQLiteVersion returns the version of SQLite in this program.
func SQLiteVersion() string { return sqlite.EngineVersion() }
