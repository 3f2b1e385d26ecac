package docs

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"testing"
)

// onRiver is the document that counts the lines of four tasks, of programs that make bench-check
// runs.
const onRiver = "docs/coming-from/river.md"

var counted = regexp.MustCompile(`\| \[(\d+)\]\(([^)]+)\) \| \[(\d+)\]\(([^)]+)\) \|`)

// TestLinesBesideRiver counts the lines of each task by River and by Nixie. Ours has fewer, and the
// document says how many.
func TestLinesBesideRiver(t *testing.T) {
	tasks := counted.FindAllStringSubmatch(read(t, onRiver), -1)
	if len(tasks) != 4 {
		t.Errorf("%s counts %d tasks, want 4", onRiver, len(tasks))
	}
	for _, task := range tasks {
		theirs, ours := path.Join("docs/coming-from", task[2]), path.Join("docs/coming-from", task[4])
		if path.Base(theirs) != path.Base(ours) {
			t.Errorf("%s and %s are not the same task", theirs, ours)
		}
		n, m := linesOf(t, theirs), linesOf(t, ours)
		if m >= n || task[1] != strconv.Itoa(n) || task[3] != strconv.Itoa(m) {
			t.Errorf("%s has %d lines and %s %d; the document says %s and %s", theirs, n, ours, m, task[1], task[3])
		}
	}
}

// linesOf counts the lines of a file of Go that have code, below its imports.
func linesOf(t *testing.T, name string) int {
	t.Helper()
	text := []byte(read(t, name))
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	below := files.Position(parsed.Decls[len(parsed.Decls)-1].End()).Line
	var s scanner.Scanner
	file := files.AddFile(name, -1, len(text))
	s.Init(file, text, nil, 0) // without comments
	lines := map[int]bool{}
	for {
		at, kind, literal := s.Scan()
		switch line := file.Line(at); {
		case kind == token.EOF:
			return len(lines)
		case line > below && (kind != token.SEMICOLON || literal == ";"):
			lines[line] = true
		}
	}
}
