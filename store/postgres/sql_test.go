package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/sqlfile"
)

func files(t *testing.T) map[string]sqlfile.File {
	t.Helper()
	all, err := sqlfile.Read(sqlFolder, "$")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHeaders checks that each file of the folder sql says what it does, which locks it takes, and
// what it answers.
func TestHeaders(t *testing.T) {
	answers := regexp.MustCompile(`^(select|with .*\) select|with .*\bselect) |\breturning\b`)
	open := regexp.MustCompile(`\{([a-z]+)\}`)
	again := regexp.MustCompile(`\bin \( ?select [^()]*\blimit\b`)
	for name, f := range files(t) {
		if f.Does == "" || !strings.HasSuffix(f.Does, ".") {
			t.Errorf("sql/%s.sql begins with no sentence", name)
		}
		if f.Part {
			continue
		}
		if f.Locks == "" || len(f.Out) == 0 {
			t.Errorf("sql/%s.sql does not say its locks, or what it answers", name)
		}
		if f.Out[0] != "none" && !answers.MatchString(f.Text) {
			t.Errorf("sql/%s.sql answers nothing", name)
		}
		if again.MatchString(f.Text) {
			t.Errorf("sql/%s.sql has a limit within in (…): a plan may run it for each row, so use = any(array(…))", name)
		}
		for i, in := range f.In {
			if !regexp.MustCompile(`\$` + strconv.Itoa(i+1) + `\b`).MatchString(f.Text) {
				t.Errorf("sql/%s.sql does not use %s", name, in)
			}
		}
		for _, m := range open.FindAllStringSubmatch(f.Text, -1) {
			if m[1] != "schema" && !slices.Contains(f.Fill, m[1]) {
				t.Errorf("sql/%s.sql does not say what {%s} is", name, m[1])
			}
		}
		for _, name := range f.Fill {
			if !strings.Contains(f.Text, "{"+name+"}") {
				t.Errorf("sql/%s.sql has no {%s}", name, name)
			}
		}
	}
}

// TestFilesAreUsed reads the Go files of the package: each statement that they name is there, none
// is left over, and none that they write themselves is longer than a line.
func TestFilesAreUsed(t *testing.T) {
	all, used := files(t), map[string]bool{}
	statement := regexp.MustCompile(`^\W*(select|insert into|update|delete from|with|copy|create|drop|lock table|alter) `)
	set := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			first := e
			for {
				sum, ok := first.(*ast.BinaryExpr)
				if !ok {
					break
				}
				first = sum.X
			}
			lit, ok := first.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			begin, end := set.Position(e.Pos()), set.Position(e.End())
			file, named := strings.CutSuffix(text, ".sql")
			f, is := all[file]
			used[file] = used[file] || is
			if named && file != "" && (!is || f.Part) {
				t.Errorf("%s: sql/%s is no statement", begin, text)
			}
			if statement.MatchString(text) && begin.Line != end.Line {
				t.Errorf("%s: a statement of more than one line belongs in the folder sql", begin)
			}
			return true
		})
	}
	for _, rule := range rules {
		used["check_"+strings.ReplaceAll(rule, "-", "_")] = true
	}
	including := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for name := range all {
		data, err := os.ReadFile("sql/" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range including.FindAllStringSubmatch(string(data), -1) {
			used[m[1]] = true
		}
	}
	for name := range all {
		if !used[name] {
			t.Errorf("nothing uses sql/%s.sql", name)
		}
	}
}
