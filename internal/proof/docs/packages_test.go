package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// beginnings are the packages with which programs begin, and where the program is run with which
// their comment opens.
var beginnings = map[string]string{
	".": program, "worker": "worker/" + program, "store": "store/" + program, "office": "office/" + program,
	"redrive": "redrive/" + program, "loop": "loop/" + program, "local": "examples/hello/main.go",
}

// program is the file of the example of a package.
const program = "example_program_test.go"

var (
	// forWhom matches the beginning of the comment of a package.
	forWhom = regexp.MustCompile(`^Package \w+, for (programs|stores and drivers)\b`)
	// before and output match the parts of an example that a program has otherwise, or not.
	before = regexp.MustCompile(`(?s)\A.*?package \w+\n`)
	output = regexp.MustCompile(`(?s)\t// (Unordered o|O)utput:.*\z`)
)

// TestPackagesOpenWithAProgram reads the comments of packages. They say for whom the package is,
// and show a whole program before anything else, which is one of its examples.
func TestPackagesOpenWithAProgram(t *testing.T) {
	for folder, file := range beginnings {
		comment := commentOf(t, folder)
		if !forWhom.MatchString(comment) {
			t.Errorf("the comment of %s does not say for whom it is: %.60q", folder, comment)
		}
		_, rest, _ := strings.Cut(comment, "\n\n")
		var shown strings.Builder
		for line := range strings.Lines(rest) {
			if line != "\n" && !strings.HasPrefix(line, "\t") {
				break
			}
			shown.WriteString(strings.TrimPrefix(line, "\t"))
		}
		want := before.ReplaceAllString(read(t, file), "package main\n")
		want = strings.Replace(want, "func Example() {", "func main() {", 1)
		want = output.ReplaceAllString(want, "}\n")
		if strings.TrimSpace(shown.String()) != strings.TrimSpace(want) {
			t.Errorf("the comment of %s does not open with the program of %s:\n%s\nand not\n%s", folder, file, want, shown.String())
		}
	}
}

// commentOf returns the comment of a package.
func commentOf(t *testing.T, folder string) string {
	t.Helper()
	fsys := os.DirFS(root)
	names, err := fs.Glob(fsys, folder+"/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Doc != nil && !strings.HasSuffix(name, "_test.go") {
			return parsed.Doc.Text()
		}
	}
	t.Errorf("%s has no comment", folder)
	return ""
}
