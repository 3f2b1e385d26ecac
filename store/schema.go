package store

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Schema looks after what a store keeps its data in, apart from the store: its
// migrations. It is safe to be used by several processes at once, which take
// turns.
type Schema interface {
	// Migrations lists those that this program knows, oldest first, with when they
	// were applied. Schemas that are newer, or not ours, are an error of
	// CodeInvalid.
	Migrations(ctx context.Context) ([]Migration, error)
	// Up applies what is missing up to a version, 0 for the newest, and returns what
	// it applied. What was interrupted is run again. With a grant it gives that
	// role what a store needs at run time, and no more.
	Up(ctx context.Context, version int, grant string) ([]Migration, error)
	// Down undoes what is above a version, newest first, and returns it. Where there
	// are rows it is CodeConflict, unless lose says that they may be lost.
	Down(ctx context.Context, version int, lose bool) ([]Migration, error)
	// Script is what Up, or Down, runs from one end to the other, for people who run
	// it by other means.
	Script(down bool, grant string) (string, error)
	// Validate compares what is there with what the migrations make.
	Validate(ctx context.Context) ([]Violation, error)
}

// Migration is one step of a schema.
type Migration struct {
	Version  int
	Name     string
	Up, Down string // as it is written
	Applied  bool
	At       time.Time // when it was applied; zero: it was not, or the store keeps no time
}

var migrationName = regexp.MustCompile(`^(\d{4})_(\w+)\.(up|down)\.sql$`)

// ReadMigrations reads pairs of files like 0001_core.up.sql and 0001_core.down.sql,
// numbered from 1 without a gap.
func ReadMigrations(folder fs.FS) ([]Migration, error) {
	names, err := fs.Glob(folder, "*/*.sql")
	if err != nil {
		return nil, err
	}
	found := map[int]*Migration{}
	for _, name := range names {
		parts := migrationName.FindStringSubmatch(path.Base(name))
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
			m.Up = string(text)
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

// Steps are the migrations between what is applied and a version, in the order in
// which they are to be run: upwards to a version, 0 for the newest, or downwards.
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

// Compare tells two descriptions of a schema apart: what there is, by kind and name,
// and how it is.
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
