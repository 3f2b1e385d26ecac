package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		text := licenceText(t, m.Dir)
		if why := Acceptable(Licences(text), tree.ships(m.Path)); why != "" {
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

func TestAcceptable(t *testing.T) {
	for _, tc := range []struct {
		text  string
		names []string
		ships bool
		fine  bool
	}{
		{"Permission is hereby granted, free of\n  charge, to any person obtaining a copy", []string{"MIT"}, true, true},
		{"Apache License\n   Version 2.0, January 2004", []string{"Apache-2.0"}, true, true},
		{"Mozilla Public License Version 2.0 … GNU Lesser General Public License Version 2.1", []string{"MPL-2.0"}, false, true},
		{"Mozilla Public License Version 2.0", []string{"MPL-2.0"}, true, false},
		{"GNU GENERAL PUBLIC LICENSE\nVersion 3", []string{"GPL"}, false, false},
		{"GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3", []string{"AGPL"}, true, false},
		{"Business Source License 1.1", []string{"BUSL"}, false, false},
		{"All rights reserved.", nil, false, false},
	} {
		got := Licences(tc.text)
		if !slices.Equal(got, tc.names) {
			t.Errorf("%q: %v, want %v", tc.text, got, tc.names)
		}
		if why := Acceptable(got, tc.ships); (why == "") != tc.fine {
			t.Errorf("%q, ships %v: %q", tc.text, tc.ships, why)
		}
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

// TestOwnLicence checks that the project has the licence it says it has.
func TestOwnLicence(t *testing.T) {
	data, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if got := Licences(string(data)); !slices.Equal(got, []string{"Apache-2.0"}) {
		t.Errorf("LICENSE reads as %v", got)
	}
}
