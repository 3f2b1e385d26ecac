package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
)

// Migrations are numbered pairs of files, applied in order, each in one
// transaction together with the schema number that it leads to.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the schema that this program reads and writes.
const schemaVersion = 1

// applicationID marks a SQLite file as a Nixie store ("Nixi").
const applicationID = 0x4e697869

// leastVersion is the first SQLite without the WAL-reset race, which could lose
// committed transactions when two connections wrote and checkpointed at once.
const leastVersion = 3_051_003

// checkEngine refuses a SQLite library that cannot keep our promises.
func checkEngine(c conn) error {
	var version string
	if err := c.each("select sqlite_version()", func(row rows) error {
		version = row.ColumnText(0)
		return nil
	}); err != nil {
		return err
	}
	if number := versionNumber(version); number < leastVersion {
		return nixie.Errorf(nixie.CodeUnavailable,
			"SQLite %s can lose committed transactions: build with modernc.org/sqlite of SQLite 3.51.3 or newer", version)
	}
	return nil
}

func versionNumber(version string) int {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return 0
	}
	return major*1_000_000 + minor*1_000 + patch
}

// migrate brings the schema up to schemaVersion, or refuses a newer or foreign
// one without touching it.
func migrate(c conn, path string) error {
	have, err := schemaOf(c, path)
	if err != nil || have == schemaVersion {
		return err
	}
	if err := c.run("begin immediate"); err != nil {
		return err
	}
	if err := migrateFrom(c, path); err != nil {
		_ = c.run("rollback") // the first error says what went wrong
		return err
	}
	return c.run("commit")
}

// migrateFrom looks again under the write lock: another process may have been
// faster.
func migrateFrom(c conn, path string) error {
	have, err := schemaOf(c, path)
	if err != nil {
		return err
	}
	for v := have + 1; v <= schemaVersion; v++ {
		script, err := migration(v, "up")
		if err != nil {
			return err
		}
		if err := sqlitex.ExecuteScript(c.Conn, script, nil); err != nil {
			return fmt.Errorf("migration %d: %w", v, err)
		}
	}
	if have == schemaVersion {
		return nil
	}
	if err := c.run(fmt.Sprintf("pragma application_id = %d", applicationID)); err != nil {
		return err
	}
	return c.run(fmt.Sprintf("pragma user_version = %d", schemaVersion))
}

// schemaOf returns the schema number of the file, 0 for an empty one.
func schemaOf(c conn, path string) (int, error) {
	// One statement is one snapshot: another process may be making the store.
	var version, app, tables int64
	err := c.each("select (select user_version from pragma_user_version), (select application_id from pragma_application_id), (select count(*) from sqlite_schema)", func(row rows) error {
		version, app, tables = row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2)
		return nil
	})
	if err != nil {
		return 0, err
	}
	switch {
	case app != applicationID && (app != 0 || tables > 0 || version != 0):
		return 0, nixie.Errorf(nixie.CodeInvalid, "%s is another program's SQLite file: name another file", path)
	case version > schemaVersion:
		return 0, nixie.Errorf(nixie.CodeInvalid,
			"store %s has schema %d, this program knows up to %d: use a newer nixie", path, version, schemaVersion)
	}
	return int(version), nil
}

func migration(version int, direction string) (string, error) {
	names, err := fs.Glob(migrations, fmt.Sprintf("migrations/%04d_*.%s.sql", version, direction))
	if err != nil || len(names) != 1 {
		return "", nixie.Errorf(nixie.CodeInternal, "migration %d %s: want one file, have %s", version, direction, strings.Join(names, ", "))
	}
	data, err := fs.ReadFile(migrations, names[0])
	return string(data), err
}
