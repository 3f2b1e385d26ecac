package arch

import (
	"fmt"
	"go/ast"
	"io"
	"slices"
	"text/tabwriter"
)

// group is a part of the repository whose size is watched.
type group struct {
	name            string
	in              []string // packages, as in a room
	tests           bool     // the bound on lines counts tests, too
	lines, exports  int      // bounds; 0 is none
	wantLines, want int      // what the bounds are to become, if that is less
}

// groups are printed in this order. Where a bound is above the wanted one, it was set to the size
// of that day, and it only goes down.
var groups = []group{
	{name: "root package", in: []string{"."}, lines: 1600, exports: 220},
	{name: "check, filter, lease, policy, privacy", in: []string{"check", "filter", "lease", "policy", "privacy"}},
	{name: "contracts: store, broker", in: []string{"store", "store/lifecycle", "broker"}},
	{name: "engines: worker, redrive", in: []string{"worker", "redrive"}},
	{name: "office, mapreduce", in: []string{"office", "mapreduce/..."}},
	{name: "store/memory, store/itemdir", in: []string{"store/memory", "store/itemdir"}},
	{name: "store/sqlite", in: []string{"store/sqlite"}},
	{name: "store/postgres", in: []string{"store/postgres"}},
	{name: "broker/kafka", in: []string{"broker/kafka"}},
	{name: "suites", in: []string{"store/storetest", "broker/brokertest"}},
	{name: "command line", in: []string{"internal/cli"}, lines: 9000, wantLines: 7000},
	{name: "rest of internal that ships", in: []string{"cmd/...", "internal/app", "internal/config", "internal/command",
		"internal/failurejson",
		"internal/itemfile", "internal/items", "internal/letterfile", "internal/runner", "internal/sqlfile", "internal/where"}},
	{name: "proofs and apparatus", in: []string{"internal/proof/..."}, tests: true, lines: 14600, wantLines: 13000},
	{name: "bench, examples", in: []string{"bench/...", "examples/..."}},
	{name: "whole repository", in: []string{"./..."}, tests: true, lines: 156000, wantLines: 122000},
}

// size counts a group.
type size struct{ lines, tests, exports int }

// Sizes prints the size of every group with its bounds, and reports the groups beyond them and
// the packages of no group.
func Sizes(t *Tree, out io.Writer) []Violation {
	var wrong []Violation
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "group\tlines\tof tests\texported\tbound")
	for _, g := range groups {
		s := t.size(g)
		lines := s.lines
		bound := ""
		if g.tests {
			lines += s.tests
		}
		for _, b := range []struct {
			has, most, want int
			of              string
		}{{lines, g.lines, g.wantLines, "lines"}, {s.exports, g.exports, g.want, "exported"}} {
			if b.most == 0 {
				continue
			}
			bound += fmt.Sprintf("%d %s of %d, wanted %d; ", b.has, b.of, b.most, b.want)
			if b.has > b.most {
				wrong = append(wrong, Violation{"group-size", g.name, fmt.Sprintf("%d %s, the bound is %d", b.has, b.of, b.most)})
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", g.name, s.lines, s.tests, s.exports, bound)
	}
	_ = w.Flush() // to memory
	for _, p := range t.packages {
		if !slices.ContainsFunc(groups[:len(groups)-1], func(g group) bool { return matches(g.in, p.path) }) {
			wrong = append(wrong, Violation{"group-size", p.path, "this package is in no group of internal/proof/arch/groups.go"})
		}
	}
	return wrong
}

func (t *Tree) size(g group) size {
	var s size
	for _, p := range t.packages {
		if !matches(g.in, p.path) && g.in[0] != "./..." {
			continue
		}
		for _, f := range p.files {
			if f.test {
				s.tests += f.lines
			} else {
				s.lines += f.lines
				s.exports += exported(f.syntax)
			}
		}
	}
	return s
}

// exported counts the exported types, functions, methods of exported types, constants and
// variables of a file.
func exported(f *ast.File) int {
	n := 0
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							n++
						}
					}
				}
			}
		}
	}
	return n
}

// receiver returns the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	x := fn.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
