package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// HashesSince is the migration from which on a store keeps the hash of each migration that made it.
// Builds from before refuse its number, as they do each that they do not know.
const HashesSince = 2

// ErrAnotherBuild is in the error chain when a store is refused because migrations made it that
// this program does not have. Nothing of the store was changed.
var ErrAnotherBuild = errors.New("made by another build")

// AnotherBuild returns the refusal of a store, with the difference that was found.
func AnotherBuild(name, format string, args ...any) error {
	return nixie.Errorf(nixie.CodeInvalid,
		"store %s was %w (%s): export it with that one (nixie dlq export) and import it into a new store",
		name, ErrAnotherBuild, fmt.Sprintf(format, args...))
}

// CompareHashes refuses a store of which a migration has another hash than in this program, or
// none. Hashes are by version.
func CompareHashes(name string, list []Migration, hashes map[int]string) error {
	for _, m := range list {
		if is := hashes[m.Version]; m.Applied && is != m.Hash {
			return AnotherBuild(name, "its migration %d is %s, ours %s", m.Version, short(is), short(m.Hash))
		}
	}
	return nil
}

// short returns the begin of a hash, enough for people to compare.
func short(hash string) string {
	if hash == "" {
		return "unknown"
	}
	return hash[:min(len(hash), 12)]
}

// CompareSchemas refuses a store without hashes if its schema is not the one that our migrations
// make. It allows tables, views and indexes that only the store has: those of its users change no
// answer of ours.
func CompareSchemas(name string, differences []Violation) error {
	theirs := map[string]bool{}
	for _, v := range differences {
		theirs[v.Subject] = theirs[v.Subject] || v.Rule == "table-unknown"
	}
	found := slices.DeleteFunc(slices.Clone(differences), func(v Violation) bool {
		table, _, _ := strings.Cut(v.Subject, ".")
		return theirs[table] || v.Rule == "index-unknown" || v.Rule == "view-unknown"
	})
	switch len(found) {
	case 0:
		return nil
	case 1:
		return AnotherBuild(name, "its schema differs: %s %s", found[0].Rule, found[0].Subject)
	}
	return AnotherBuild(name, "its schema has %d differences, such as %s %s", len(found), found[0].Rule, found[0].Subject)
}

// HashRows returns the rows of SQL, as version and hash, of the migrations up to a version.
func HashRows(list []Migration, version int) string {
	rows := make([]string, version)
	for i, m := range list[:version] {
		rows[i] = fmt.Sprintf("(%d, '%s')", m.Version, m.Hash)
	}
	return strings.Join(rows, ", ")
}
