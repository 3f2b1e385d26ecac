package arch

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// Check reports every violation in t, file by file.
func Check(t *Tree) []Violation {
	t.found = nil
	for _, p := range t.packages {
		t.checkPackage(p)
		for _, f := range p.files {
			t.checkFloor(p, f)
			t.checkCalls(p, f)
			t.checkEngine(p, f)
			t.checkVariables(p, f)
			t.checkNumbers(p, f)
			t.checkSize(f)
		}
	}
	t.checkTexts()
	return t.found
}

// say reports a violation.
func (t *Tree) say(rule, where, format string, args ...any) {
	t.found = append(t.found, Violation{rule, where, fmt.Sprintf(format, args...)})
}

// checkPackage looks for a package without a room, or with a name that says nothing.
func (t *Tree) checkPackage(p *pkg) {
	if !p.known {
		t.say("not-in-plan", p.path, "this package is not in the floor plan; decide on which floor it lies, write that into a "+
			"decision record, then add a row to internal/proof/arch/plan.go")
	}
	names := strings.Split(p.path, "/")
	for _, f := range p.files {
		names = append(names, strings.TrimSuffix(f.syntax.Name.Name, "_test"))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Contains(bannedNames, name) {
			t.say("package-name", p.path, "%q says nothing: name the package by what it is about", name)
		}
	}
}

// checkCalls looks for tests that sleep in real time and for goroutines in quiet rooms. The
// linter's forbidigo knows what else must not be called where.
func (t *Tree) checkCalls(p *pkg, f *file) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called := types.ExprString(n.Fun)
			if called == "synctest.Test" {
				return false // time is virtual there
			}
			if called == "time.Sleep" && !p.shipped(f) {
				t.say("sleep", t.where(n), "a sleep is a guess: wait for the event, inject the clock, or sleep inside synctest.Test")
			}
		case *ast.GoStmt:
			if p.shipped(f) && slices.Contains(quiet, p.path) {
				t.say("goroutine", t.where(n), "%s starts no goroutine: the caller owns concurrency here", p.path)
			}
		}
		return true
	})
}

// checkSize looks for a file or function that is too long to hold in one head. Generated files are
// not counted.
func (t *Tree) checkSize(f *file) {
	if ast.IsGenerated(f.syntax) {
		return
	}
	if f.lines > maxFileLines {
		t.say("file-size", f.name, "%d lines, the limit is %d: split it by noun", f.lines, maxFileLines)
	}
	for _, decl := range f.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
		if lines > maxFuncLines {
			t.say("function-size", t.where(fn), "%s has %d lines, the limit is %d: give its parts names", fn.Name.Name, lines, maxFuncLines)
		}
	}
}
