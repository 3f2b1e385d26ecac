package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicences reads the licence of every module in go.mod, in the module
// cache; one that is not there yet is downloaded first.
func TestLicences(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules(t) {
		if _, why := Licence(licenceText(t, m.Dir), tree.ships(m.Path)); why != "" {
			t.Errorf("%s: %s", m.Path, why)
		}
	}
}

type module struct{ Path, Dir, Error string }

func modules(t *testing.T) []module {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json")
	cmd.Dir = "../../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod download: %v\n%s%s", err, stderr.String(), out)
	}
	var all []module
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

func licenceText(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || inventory.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return strings.Join(all, "\n")
}

func TestLicence(t *testing.T) {
	for _, tc := range []struct {
		text, name  string
		ships, fine bool
	}{
		{"Permission is hereby granted, free of\n  charge, to any person obtaining a copy", "MIT", true, true},
		{"Apache License\n   Version 2.0, January 2004", "Apache-2.0", true, true},
		{"Mozilla Public License Version 2.0 … GNU Lesser General Public License Version 2.1", "MPL-2.0", false, true},
		{"Mozilla Public License Version 2.0", "MPL-2.0", true, false},
		{"GNU GENERAL PUBLIC LICENSE\nVersion 3", "", false, false},
		{"Business Source License 1.1", "", false, false},
		{"All rights reserved.", "", false, false},
	} {
		names, why := Licence(tc.text, tc.ships)
		if strings.Join(names, " ") != tc.name || (why == "") != tc.fine {
			t.Errorf("%q, ships %v: %v, %q", tc.text, tc.ships, names, why)
		}
	}
	if names, why := Licence(licenceText(t, "../../.."), true); strings.Join(names, " ") != "Apache-2.0" || why != "" {
		t.Errorf("our own licence reads as %v, %q", names, why)
	}
}

func TestShips(t *testing.T) {
	tree := load(t, map[string]string{
		"worker/a.go":      "package worker\nimport \"example.com/lib/part\"\nconst X = part.X",
		"worker/a_test.go": "package worker\nimport \"example.com/proof\"\nconst X = proof.X",
	})
	if !tree.ships("example.com/lib") || tree.ships("example.com/proof") || tree.ships("example.com/li") {
		t.Error("only example.com/lib ships")
	}
}
