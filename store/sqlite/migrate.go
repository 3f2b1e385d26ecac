package sqlite

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// migrations holds numbered pairs of files. Each is applied in one transaction, together with its
// schema number.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the schema that this program reads and writes.
const schemaVersion = 5

// applicationID marks a SQLite file as a Nixie store ("Nixi").
const applicationID = 0x4e697869

// leastVersion is the first SQLite without the WAL reset race, which could lose committed
// transactions when two connections wrote and checkpointed at once.
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

// ours reads the migrations of this program once, for all stores of a process.
var ours = sync.OnceValues(func() ([]store.Migration, error) { return store.ReadMigrations(migrations) })

// migrate brings the schema up to schemaVersion. It refuses a foreign schema, and that of another
// build, without a change.
func migrate(c conn, path string) error {
	list, err := ours()
	if err != nil {
		return err
	}
	known, err := identify(c, path, list)
	if err != nil || known[len(known)-1].Applied {
		return err
	}
	_, err = move(c, path, list, schemaVersion, false, nil)
	return err
}

// recognise refuses an engine that cannot keep our promises, and a file that is no store of ours.
func recognise(c conn, path string) error {
	if err := checkEngine(c); err != nil {
		return err
	}
	list, err := ours()
	if err == nil {
		_, err = identify(c, path, list)
	}
	return err
}

// identify marks the migrations that made the file, and refuses a file of another build. A file
// without hashes is compared as a whole.
func identify(c conn, path string, list []store.Migration) ([]store.Migration, error) {
	have, err := schemaOf(c, path)
	if err != nil {
		return nil, err
	}
	list = applied(list, have)
	switch {
	case have >= store.HashesSince:
		hashes, err := hashesOf(c)
		if err == nil {
			err = store.CompareHashes(path, list, hashes)
		}
		return list, err
	case have > 0:
		differences, err := compare(c, path, list, have)
		if err == nil {
			err = store.CompareSchemas(path, differences)
		}
		return list, err
	}
	return list, nil
}

// hashesOf reads the hashes of the migrations that made the file.
func hashesOf(c conn) (map[int]string, error) {
	hashes := map[int]string{}
	err := c.each("select version, hash from nixie_migration", func(row rows) error {
		hashes[row.ColumnInt(0)] = row.ColumnText(1)
		return nil
	})
	return hashes, err
}

// move applies or undoes migrations in one transaction and returns them. It calls check first, if
// there is something to do. It identifies the file under the write lock, since another process may
// migrate at the same time.
func move(c conn, path string, list []store.Migration, version int, down bool, check func() error) (steps []store.Migration, err error) {
	if err := c.run("begin immediate"); err != nil {
		return nil, err
	}
	if steps, err = moveNow(c, path, list, version, down, check); err != nil {
		_ = c.run("rollback") // the first error says what went wrong
		return nil, err
	}
	return steps, c.run("commit")
}

func moveNow(c conn, path string, list []store.Migration, version int, down bool, check func() error) ([]store.Migration, error) {
	known, err := identify(c, path, list)
	if err != nil {
		return nil, err
	}
	steps, err := store.Steps(known, version, down)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	if check != nil {
		if err := check(); err != nil {
			return nil, err
		}
	}
	for i := range steps {
		m := &steps[i]
		script, to := m.Up, m.Version
		if down {
			script, to = m.Down, m.Version-1
		}
		m.Applied = !down
		if err := sqlitex.ExecuteScript(c.Conn, script, nil); err != nil {
			return nil, fmt.Errorf("migration %d: %w", m.Version, err)
		}
		if err := sqlitex.ExecuteScript(c.Conn, noted(list, to), nil); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// noted returns the script that writes the schema number and the hashes of its migrations. Number 0
// also removes the application ID.
func noted(list []store.Migration, version int) string {
	owner := applicationID
	if version == 0 {
		owner = 0
	}
	script := fmt.Sprintf("pragma application_id = %d;\npragma user_version = %d;\n", owner, version)
	if version >= store.HashesSince {
		script += "delete from nixie_migration;\ninsert into nixie_migration (version, hash) values " +
			store.HashRows(list, version) + ";\n"
	}
	return script
}

// applied marks the migrations that a file with a schema number has.
func applied(list []store.Migration, have int) []store.Migration {
	list = slices.Clone(list)
	for i := range list {
		list[i].Applied = list[i].Version <= have
	}
	return list
}

// schemaOf returns the schema number of the file, 0 for an empty one.
func schemaOf(c conn, path string) (int, error) {
	var version, app, tables int64
	err := c.each(sqlText("schema_number"), func(row rows) error {
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
		return 0, store.AnotherBuild(path, "it has schema %d, ours is %d", version, schemaVersion)
	}
	return int(version), nil
}
