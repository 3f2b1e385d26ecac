package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Schema migrates and validates the schema of a file, for nixie migrate.
type Schema struct {
	path string
	list []store.Migration
}

var _ store.Schema = (*Schema)(nil)

// NewSchema returns the schema of a file. It does not open the file.
func NewSchema(path string) (*Schema, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store path: %w", err)
	}
	list, err := ours()
	return &Schema{path, list}, err
}

// on runs f on a connection to the file.
func (m *Schema) on(mustExist bool, f func(conn) error) error {
	if err := checkFile(m.path, mustExist); err != nil {
		return err
	}
	c, err := openLooking(m.path, "", !mustExist, defaultLockWait, func(c conn) error {
		if err := checkEngine(c); err != nil {
			return err
		}
		_, err := schemaOf(c, m.path)
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // f has committed its changes
	return explain(m.path, f(c))
}

// Migrations implements store.Schema. A file stores no times.
func (m *Schema) Migrations(context.Context) (list []store.Migration, err error) {
	err = m.on(true, func(c conn) error {
		list, err = identify(c, m.path, m.list)
		return err
	})
	return list, err
}

// Up implements store.Schema.
func (m *Schema) Up(_ context.Context, version int, grants store.Grants) (done []store.Migration, err error) {
	if grants != (store.Grants{}) {
		return nil, noRoles()
	}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o700); err != nil {
		return nil, nixie.Errorf(nixie.CodeUnavailable, "folder of the store: %w", err)
	}
	err = m.on(false, func(c conn) error {
		done, err = move(c, m.path, m.list, version, false, nil)
		return err
	})
	return done, err
}

func noRoles() error {
	return nixie.Errorf(nixie.CodeInvalid,
		"a SQLite file has no roles to grant anything to: who may use it is said by the rights of the file")
}

// Down implements store.Schema.
func (m *Schema) Down(_ context.Context, version int, lose bool) (done []store.Migration, err error) {
	err = m.on(true, func(c conn) error {
		done, err = move(c, m.path, m.list, version, true, func() error {
			if lose {
				return nil
			}
			return m.refuseData(c)
		})
		return err
	})
	return done, err
}

// refuseData returns an error if tables have rows. Those about the store itself count as no data.
func (m *Schema) refuseData(c conn) error {
	var tables, full []string
	if err := c.each(sqlText("schema_tables"), func(row rows) error {
		tables = append(tables, row.ColumnText(0))
		return nil
	}); err != nil {
		return err
	}
	for _, table := range tables {
		some, err := c.number(fmt.Sprintf("select exists (select 1 from %q)", table))
		if err != nil {
			return err
		}
		if some != 0 {
			full = append(full, table)
		}
	}
	if len(full) == 0 {
		return nil
	}
	return nixie.Errorf(nixie.CodeConflict,
		"store %s has data that would be lost, in %s: give --lose-data to delete it", m.path, strings.Join(full, ", "))
}

// Script implements store.Schema.
func (m *Schema) Script(down bool, grants store.Grants) (string, error) {
	if grants != (store.Grants{}) {
		return "", noRoles()
	}
	var b strings.Builder
	part := func(script string, to int) { fmt.Fprintf(&b, "begin;\n%s\n%scommit;\n\n", script, noted(m.list, to)) }
	if !down {
		for _, step := range m.list {
			part(step.Up, step.Version)
		}
		return b.String(), nil
	}
	for i := range m.list {
		step := m.list[len(m.list)-1-i]
		part(step.Down, step.Version-1)
	}
	return b.String(), nil
}

// Validate implements store.Schema. It runs the migrations in memory and compares.
func (m *Schema) Validate(context.Context) (list []store.Violation, err error) {
	err = m.on(true, func(c conn) error {
		list, err = m.compare(c)
		return err
	})
	return list, err
}

// compare returns the differences from the schema that the migrations make.
func (m *Schema) compare(c conn) ([]store.Violation, error) {
	have, err := schemaOf(c, m.path)
	if err != nil {
		return nil, err
	}
	return compare(c, m.path, m.list, have)
}

// compare returns the differences from the schema that the first migrations make.
func compare(c conn, path string, list []store.Migration, have int) ([]store.Violation, error) {
	other, err := openConn("", "", true, 0) // a database without a name is in memory
	if err != nil {
		return nil, err
	}
	defer other.Close() //nolint:errcheck // the database is temporary
	if have > 0 {
		if _, err := move(other, path, list, have, false, nil); err != nil {
			return nil, err
		}
	}
	is, err := describe(c, have)
	if err != nil {
		return nil, err
	}
	made, err := describe(other, have)
	return store.Compare(made, is), err
}

// describe returns tables, indexes, views and columns with their definitions, and the hashes of the
// migrations.
func describe(c conn, have int) (map[string]string, error) {
	found := map[string]string{}
	queries := []string{sqlText("schema_objects"), sqlText("schema_columns")}
	if have >= store.HashesSince {
		queries = append(queries, "select 'migration ' || version, hash from nixie_migration")
	}
	for _, query := range queries {
		if err := c.each(query, func(row rows) error {
			found[row.ColumnText(0)] = strings.Join(strings.Fields(row.ColumnText(1)), " ")
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}
