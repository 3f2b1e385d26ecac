package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one defect that is brought in on purpose.
type mutant struct {
	number int    // in the list of forty of the design, or beyond it
	name   string // as there
	breaks string // what goes wrong with it here
	edits  []edit
	tests  finder

	survived bool // no test that was there when it was planted found it
}

// edit replaces a text that stands once in a file.
type edit struct {
	file     string // below the module
	old, new string
}

// finder says which tests have to find a mutant: all of the package that the
// mutant is in, unless a pattern, as that of go test -run, leaves out those that
// look at something else.
type finder struct{ pkg, pattern string }

func (f finder) String() string {
	if f.pattern == "" {
		return f.pkg
	}
	return f.pkg + " " + f.pattern
}

// mutated returns the changed files of a mutant by their names below the module.
func (m *mutant) mutated(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.edits {
		text, known := files[e.file]
		if !known {
			source, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("mutant %d: %w", m.number, err)
			}
			text = string(source)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("mutant %d: its old text stands %d times in %s, want once: bring the table up to date:\n%s", m.number,
				n, e.file, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files, nil
}

// overlay writes the changed files into a folder, and the file that makes the go
// command read them instead of those of the tree.
func (m *mutant) overlay(root, folder string) (path string, err error) {
	files, err := m.mutated(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		changed := filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = changed
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
