package sqlfile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	files := fstest.MapFS{
		"sql/columns.sql": {Data: []byte("-- Part: columns of a message.\n-- whole: select … from m\n-- out: pos, due\nm.pos,\n  m.due\n")},
		"sql/claim.sql": {Data: []byte(`-- Reads what is due,
-- oldest first.
-- in: limit, now — how many at most, and the time
-- locks: message
-- out: columns,
-- out: label
select {{columns}}, ':now''s'::text
from m
-- a remark
where due <= :now and due > :now - 1 and at[1 : 2] limit :limit
`)},
	}
	all, err := Read(files, "$")
	if err != nil {
		t.Fatal(err)
	}
	f := all["claim"]
	if f.Does != "Reads what is due, oldest first." || f.Locks != "message" || f.Part || strings.Join(f.In, " ") != "limit now" ||
		strings.Join(f.Out, " ") != "columns label" {
		t.Errorf("header: %+v", f)
	}
	if want := "select m.pos, m.due, ':now''s'::text from m where due <= $2 and due > $2 - 1 and at[1 : 2] limit $1"; f.Text != want {
		t.Errorf("text\n%s, want\n%s", f.Text, want)
	}
	if p := all["columns"]; !p.Part || p.Whole != "select m.pos, m.due from m" {
		t.Errorf("part: %+v", p)
	}
	for name, f := range all {
		if alone := Text(files, "$")(name); alone != f.Text {
			t.Errorf("%s is %q, alone %q", name, f.Text, alone)
		}
	}
	if got := Text(files, "?")("claim"); !strings.Contains(got, "due > ?2 - 1") {
		t.Errorf("text for SQLite: %s", got)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"-- Reads.\nselect :nothing", ":nothing"},
		{"-- Reads.\nselect {{nothing}}", `"nothing"`},
		{"-- Reads.\nselect {{nothing", `"nothing"`},
		{"-- Reads.\nselect {{a}}", `"a"`},
		{"-- Reads.\nselect 1 -- one\nfrom m", "-- one"},
	} {
		_, err := Read(fstest.MapFS{"sql/a.sql": {Data: []byte(c.text)}}, "?")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "sql/a.sql") {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// stores are the packages that have their statements in files, by the pattern of a use.
var stores = map[string]string{"../../store/sqlite": `sqlText\(`}

// TestHeaders reads the headers of all statements: each says what it does, in a sentence, and what
// its arguments mean.
func TestHeaders(t *testing.T) {
	for folder := range stores {
		all, err := Read(os.DirFS(folder), "?")
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(all), err)
		}
		for name, f := range all {
			data, err := os.ReadFile(filepath.Join(folder, "sql", name+".sql"))
			if err != nil {
				t.Fatal(err)
			}
			header, _, _ := strings.Cut(string(data), "\n"+strings.SplitN(f.Text, " ", 2)[0])
			for line := range strings.Lines(header) {
				if strings.HasPrefix(line, "-- in: ") && !strings.Contains(line, " — ") {
					t.Errorf("%s/sql/%s.sql: %q does not say what it means", folder, name, line)
				}
			}
			switch {
			case !strings.HasSuffix(f.Does, "."):
				t.Errorf("%s/sql/%s.sql: %q is no sentence", folder, name, f.Does)
			case f.Part && f.Whole == "":
				t.Errorf("%s/sql/%s.sql is a part: show a statement with it, as -- whole: select … from message", folder, name)
			}
		}
	}
}

// TestUse compares the files with the Go code: each is used, and what is used is there.
func TestUse(t *testing.T) {
	for folder, variable := range stores {
		all, err := Read(os.DirFS(folder), "?")
		if err != nil {
			t.Fatal(err)
		}
		var code, parts strings.Builder
		for _, file := range goFiles(t, folder) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(data)
		}
		for name := range all {
			data, err := os.ReadFile(filepath.Join(folder, "sql", name+".sql"))
			if err != nil {
				t.Fatal(err)
			}
			parts.Write(data)
		}
		for _, use := range regexp.MustCompile(variable+`"(\w+)"[\])]`).FindAllStringSubmatch(code.String(), -1) {
			if _, there := all[use[1]]; !there {
				t.Errorf("%s uses %s, which is not there", folder, use[0])
			}
		}
		for name := range all {
			if !strings.Contains(code.String(), `"`+name+`"`) && !strings.Contains(parts.String(), "{{"+name+"}}") &&
				!strings.HasPrefix(name, "check_") {
				t.Errorf("%s/sql/%s.sql is not used", folder, name)
			}
		}
	}
}

// TestNoLongSQLInGo finds SQL that should be in a file: more than one line, or too long to read.
func TestNoLongSQLInGo(t *testing.T) {
	const longest = 120
	isSQL := regexp.MustCompile(`(?is)^\s*(select|insert into|update \w+ (set|indexed)|delete from|with \w+ \()\b|` +
		`\b(join \w+ (\w+ )?on|union all|order by|group by)\b|\bwhere\b.*[=<>]`)
	for folder := range stores {
		for _, file := range goFiles(t, folder) {
			positions := token.NewFileSet()
			syntax, err := parser.ParseFile(positions, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(syntax, func(n ast.Node) bool {
				whole, is := n.(ast.Expr)
				if !is {
					return true
				}
				long, lines := false, positions.Position(whole.End()).Line-positions.Position(whole.Pos()).Line
				switch e := n.(type) {
				case *ast.BasicLit:
					long = isSQL.MatchString(e.Value) && (lines > 0 || len(e.Value) > longest)
				case *ast.BinaryExpr:
					ast.Inspect(e, func(n ast.Node) bool {
						l, is := n.(*ast.BasicLit)
						long = long || is && isSQL.MatchString(l.Value) && lines > 0
						return true
					})
				}
				if long {
					t.Errorf("%s: SQL of more than a line: move it to a file", positions.Position(whole.Pos()))
				}
				return !long
			})
		}
	}
}

func goFiles(t *testing.T, folder string) (list []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			list = append(list, file)
		}
	}
	return list
}
