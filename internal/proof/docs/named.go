package docs

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// namedTest matches the name of a test in a document: package.TestName, with /Part for a
// part of it, nixie.TestName for the root package, or suite.Group/Clause for a
// clause of the suite for stores.
var namedTest = regexp.MustCompile("`((?:[a-z][a-z0-9/]*)\\.(?:Test|Fuzz)\\w+(?:/\\w+)*|suite\\.\\w+/\\w+)`")

// suite has the clauses that every store passes.
const suite = "store/storetest"

// NamedTests lists the tests that a text names in code marks, in their order.
func NamedTests(text string) []string {
	var names []string
	for _, match := range namedTest.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// Tests knows the tests of a repository.
type Tests struct {
	fsys    fs.FS
	sources map[string]string // of a folder, all files in one
}

// NewTests makes one for the repository at fsys.
func NewTests(fsys fs.FS) *Tests { return &Tests{fsys, map[string]string{}} }

// Missing says what there is not of a named test, or nothing.
func (t *Tests) Missing(name string) string {
	folder, test, _ := strings.Cut(name, ".")
	parts := strings.Split(test, "/")
	switch folder {
	case "suite":
		folder, parts = suite, append([]string{""}, parts...)
	case "nixie":
		folder = "."
	}
	source, err := t.source(folder)
	switch {
	case err != nil:
		return err.Error()
	case source == "":
		return "there is no package " + folder
	case parts[0] != "" && !strings.Contains(source, "func "+parts[0]+"("):
		return "there is no function " + parts[0] + " in " + folder
	}
	for _, part := range parts[1:] {
		if !strings.Contains(source, `"`+part+`"`) {
			return "there is no part " + part + " in " + folder
		}
	}
	return ""
}

func (t *Tests) source(folder string) (string, error) {
	if source, ok := t.sources[folder]; ok {
		return source, nil
	}
	files, err := fs.Glob(t.fsys, path.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := fs.ReadFile(t.fsys, file)
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	t.sources[folder] = all.String()
	return all.String(), nil
}
