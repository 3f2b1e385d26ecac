package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onGo is the document about a program in Go, whose commands build it.
const onGo = "docs/go.md"

// readyForGo makes the folder of a session the module of a reader who has fetched Nixie: it is that
// of this repository, with the modules that it names.
func readyForGo(t *testing.T, s *Session) {
	t.Helper()
	above, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	module := fmt.Sprintf("module billing\n\ngo 1.26.0\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]s\n",
		"github.com/nixie-go/nixie", above)
	for name, text := range map[string]string{"go.mod": module, "go.sum": read(t, "go.sum")} {
		if err := s.WriteFile(name, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOROOT"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		s.Set(name, strings.TrimSpace(string(value)))
	}
	s.Set("GOFLAGS", "-mod=mod")
	folder, err := s.Folder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where a step failed, its worker may still run
		_ = exec.Command("sh", "-c", `kill "$(cat "$0")"`, filepath.Join(folder, "billing.pid")).Run()
	})
}

// TestPrograms looks for Go that no test runs: a whole file on any page, and any part of a file on
// the page about Go. Each stands in the examples, or is a file that the page's own commands build
// and test.
func TestPrograms(t *testing.T) {
	names, err := fs.Glob(os.DirFS(root), "examples/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var examples [][]string
	for _, name := range names {
		examples = append(examples, strings.Split(read(t, name), "\n"))
	}
	files, parts := 0, 0
	for _, name := range documents(t) {
		blocks, err := Blocks(read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			whole := strings.Contains("\n"+b.Text, "\npackage ")
			switch lines := strings.Split(strings.Trim(b.Text, "\n"), "\n"); {
			case b.Language != "go" || !whole && name != onGo:
			case b.File != "" && name == onGo:
				files++
			case !slices.ContainsFunc(examples, func(e []string) bool { return within(e, lines) }):
				t.Errorf("%s:%d: no file of the examples has this", name, b.Line)
			default:
				parts++
			}
		}
	}
	if files == 0 || parts == 0 {
		t.Errorf("%s shows %d files and %d parts", onGo, files, parts)
	}
	text := read(t, onGo)
	if at := strings.LastIndex(text, "\n$ go vet . && go test .\n"); at < strings.LastIndex(text, `file="`) {
		t.Errorf("%s does not build and test all of its files", onGo)
	}
}

// within reports whether lines stand in a file, one below the other.
func within(file, lines []string) bool {
	for i := range len(file) - len(lines) + 1 {
		if slices.Equal(file[i:i+len(lines)], lines) {
			return true
		}
	}
	return false
}
