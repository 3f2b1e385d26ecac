package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Schema manages the migrations of a store's database, without a store. Several processes may call
// it at once: one runs at a time.
type Schema interface {
	// Migrations lists the migrations that this program knows, oldest first, with the times at
	// which they were applied. A schema of another build, or not ours, is an error of CodeInvalid.
	Migrations(ctx context.Context) ([]Migration, error)
	// Up applies the missing migrations up to a version, 0 for the newest, and returns them. It
	// runs an interrupted migration again. Then it gives roles their rights, also if nothing was
	// missing. A role that does not exist, or that owns the schema, is refused with CodeInvalid.
	Up(ctx context.Context, version int, grants Grants) ([]Migration, error)
	// Down undoes the migrations above a version, newest first, and returns them. If there are rows
	// it returns CodeConflict, unless lose says that they may be lost.
	Down(ctx context.Context, version int, lose bool) ([]Migration, error)
	// Script returns all statements of Up, or of Down, for operators who run them by other means.
	Script(down bool, grants Grants) (string, error)
	// Validate compares the schema in the database with the migrations.
	Validate(ctx context.Context) ([]Violation, error)
}

// Grants names roles of the database that are given rights, and no more than these; empty is none.
type Grants struct {
	Run     string // to run stores
	Enqueue string // to enqueue by SQL
}

// Migration is one step of a schema.
type Migration struct {
	Version  int
	Name     string
	Up, Down string // SQL
	Hash     string // SHA-256 of Up, as hexadecimal digits
	Applied  bool
	At       time.Time // zero: not applied, or the store keeps no time
}

var migrationName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{4})_(\w+)\.(up|down)\.sql$`)
})

// ReadMigrations reads pairs of files like 0001_core.up.sql and 0001_core.down.sql,
// numbered from 1 without a gap.
func ReadMigrations(folder fs.FS) ([]Migration, error) {
	names, err := fs.Glob(folder, "*/*.sql")
	if err != nil {
		return nil, err
	}
	found := map[int]*Migration{}
	for _, name := range names {
		parts := migrationName().FindStringSubmatch(path.Base(name))
		if parts == nil {
			return nil, nixie.Errorf(nixie.CodeInternal, "migration %s: name it like 0001_core.up.sql", name)
		}
		version, err := strconv.Atoi(parts[1])
		if err != nil {
			return nil, err
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		m := cmp.Or(found[version], &Migration{Version: version, Name: parts[2]})
		found[version] = m
		if parts[3] == "up" {
			m.Up, m.Hash = string(text), fmt.Sprintf("%x", sha256.Sum256(text))
		} else {
			m.Down = string(text)
		}
	}
	list := make([]Migration, 0, len(found))
	for version := 1; version <= len(found); version++ {
		m := found[version]
		if m == nil || m.Up == "" || m.Down == "" {
			return nil, nixie.Errorf(nixie.CodeInternal, "migration %d: want an up and a down file", version)
		}
		list = append(list, *m)
	}
	return list, nil
}

// Steps returns the migrations to run from the present schema to a version, in their order:
// upwards, with 0 for the newest, or downwards.
func Steps(list []Migration, version int, down bool) ([]Migration, error) {
	newest := list[len(list)-1].Version
	if version < 0 || version > newest {
		return nil, nixie.Errorf(nixie.CodeInvalid, "version %d is unknown: this program knows 0 to %d", version, newest)
	}
	if version == 0 && !down {
		version = newest
	}
	steps := slices.DeleteFunc(slices.Clone(list), func(m Migration) bool {
		if down {
			return !m.Applied || m.Version <= version
		}
		return m.Applied || m.Version > version
	})
	if down {
		slices.Reverse(steps)
	}
	return steps, nil
}

// Compare lists the differences between two descriptions of a schema. A description has an entry
// for each object: its kind and name, and its definition.
func Compare(want, have map[string]string) (list []Violation) {
	add := func(thing, rule, text string) {
		kind, name, _ := strings.Cut(thing, " ")
		list = append(list, Violation{Rule: kind + "-" + rule, Subject: name, Text: text})
	}
	for thing, how := range want {
		switch is, there := have[thing]; {
		case !there:
			add(thing, "missing", "the migrations make it, and it is not there")
		case is != how:
			add(thing, "differs", fmt.Sprintf("is %q, and the migrations make %q", is, how))
		}
	}
	for thing := range have {
		if _, known := want[thing]; !known {
			add(thing, "unknown", "is there, and no migration makes it")
		}
	}
	slices.SortFunc(list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}
