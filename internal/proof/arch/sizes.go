package arch

import (
	"fmt"
	"go/ast"
	"path"
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
				out = append(out, Violation{"file-size", f.name, fmt.Sprintf("%d lines, the limit is %d: split it by noun", f.lines, maxFileLines)})
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

// Long names the files beyond the size that is aimed at, longest first.
func Long(t *Tree) []string {
	var files []*file
	for _, p := range t.packages {
		for _, f := range p.files {
			if f.lines > aimFileLines && !ast.IsGenerated(f.syntax) {
				files = append(files, f)
			}
		}
	}
	slices.SortFunc(files, func(a, b *file) int { return b.lines - a.lines })
	var out []string
	for _, f := range files {
		out = append(out, fmt.Sprintf("%s: %d lines, aim for %d", f.name, f.lines, aimFileLines))
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
				out = append(out, Violation{"package-name", p.path, fmt.Sprintf("%q says nothing: name the package by what it is about", name)})
			}
		}
	}
	return out
}

// checkComments reports packages without a comment. A program's says what the
// command does; a library's starts with its name.
func checkComments(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		if !commented(p) {
			out = append(out, Violation{"package-comment", p.path,
				fmt.Sprintf("no package comment: say in %s what it is for", path.Join(p.path, "doc.go"))})
		}
	}
	return out
}

func commented(p *pkg) bool {
	onlyTests := !slices.ContainsFunc(p.files, func(f *file) bool { return !f.test })
	for _, f := range p.files {
		name := f.syntax.Name.Name
		text := f.syntax.Doc.Text()
		said := text != "" && (name == "main" || strings.HasPrefix(text, "Package "+strings.TrimSuffix(name, "_test")+" "))
		if said && (!f.test || onlyTests) {
			return true
		}
	}
	return false
}
