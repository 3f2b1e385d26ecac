package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// checkSizes reports files and functions that are too long to hold in one head.
// Generated files are not counted.
func checkSizes(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			if ast.IsGenerated(f.syntax) {
				continue
			}
			if f.lines > maxFileLines {
				out = append(out, Violation{"file-size", f.name, fmt.Sprintf("%d lines, the limit is %d: split it by noun", f.lines,
					maxFileLines)})
			}
			for _, decl := range f.syntax.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
				if lines > maxFuncLines {
					out = append(out, Violation{"function-size", t.where(fn),
						fmt.Sprintf("%s has %d lines, the limit is %d: give its parts names", fn.Name.Name, lines, maxFuncLines)})
				}
			}
		}
	}
	return out
}

// checkNames reports packages and folders whose name says nothing.
func checkNames(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		names := strings.Split(p.path, "/")
		for _, f := range p.files {
			if n := f.syntax.Name.Name; !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		for _, name := range names {
			if slices.Contains(bannedNames, strings.TrimSuffix(name, "_test")) {
				out = append(out, Violation{"package-name", p.path, fmt.Sprintf("%q says nothing: name the package by what it is about",
					name)})
			}
		}
	}
	return out
}
