package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// namedTest is how a document names a test: package.TestName, with /Part for a
// part of it, or suite.Group/Clause for a clause of the suite for stores.
var namedTest = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.((?:Test|Fuzz)\\w+(?:/\\w+)*)`|`(suite)\\.(\\w+/\\w+)`")

// suite is where the clauses are that every store passes.
const suite = "store/storetest"

// TestNamedTestsExist looks for every test that a document names.
func TestNamedTestsExist(t *testing.T) {
	for _, name := range documents(t) {
		found := 0
		for _, match := range namedTest.FindAllStringSubmatch(read(t, name), -1) {
			found++
			if why := missing(os.DirFS(root), match); why != "" {
				t.Errorf("%s names %s: %s", name, match[0], why)
			}
		}
		if path.Base(name) == "guarantees.md" && found == 0 {
			t.Errorf("%s names no test", name)
		}
	}
}

// missing says what there is not of a named test.
func missing(fsys fs.FS, match []string) string {
	folder, parts := match[1], strings.Split(match[2], "/")
	if match[3] == "suite" {
		folder, parts = suite, append([]string{""}, strings.Split(match[4], "/")...)
	}
	files, err := fs.Glob(fsys, folder+"/*.go")
	if err != nil || len(files) == 0 {
		return "there is no package " + folder
	}
	var source strings.Builder
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err.Error()
		}
		source.Write(text)
	}
	if parts[0] != "" && !strings.Contains(source.String(), "func "+parts[0]+"(") {
		return "there is no function " + parts[0] + " in " + folder
	}
	for _, part := range parts[1:] {
		if !strings.Contains(source.String(), `"`+part+`"`) {
			return "there is no part " + part + " in " + folder
		}
	}
	return ""
}

func TestMissing(t *testing.T) {
	fsys := os.DirFS(root)
	for text, why := range map[string]string{
		"`worker.TestDrain`":                 "",
		"`worker.TestDrain/patience`":        "",
		"`suite.Enqueue/AllOrNone`":          "",
		"`worker.TestGhost`":                 "no function TestGhost",
		"`worker.TestDrain/ghost`":           "no part ghost",
		"`suite.Enqueue/Ghost`":              "no part Ghost",
		"`internal/ghost.TestDrain`":         "no package",
		"`examples/orders.TestOrders`":       "",
		"`internal/powerloss.TestPowerLoss`": "",
	} {
		match := namedTest.FindStringSubmatch(text)
		if match == nil {
			t.Errorf("%s names no test", text)
			continue
		}
		if got := missing(fsys, match); !strings.Contains(got, why) || why == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, why)
		}
	}
}
