package arch

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// group is a part of the repository whose size is watched.
type group struct {
	name    string
	in      []string // packages, as in a room; none is all
	tests   bool     // the bound on lines counts tests, too
	lines   bound
	exports bound
}

// bound is the most that a group may have, and the most that it should have.
type bound struct{ most, wanted int }

// groups are printed in this order. Where a bound is above the wanted one, it was set to the size
// of that day, and it only goes down.
var groups = []group{
	{name: "root package", in: []string{"."}, lines: bound{1600, 1600}, exports: bound{220, 220}},
	{name: "check, filter, lease, policy, privacy", in: []string{"check", "filter", "lease", "policy", "privacy"}},
	{name: "telemetry, internal/serve", in: []string{"telemetry", "internal/serve"}},
	{name: "contracts: store, broker", in: []string{"store", "store/lifecycle", "broker"}},
	{name: "engines: worker, redrive", in: []string{"worker", "redrive"}},
	{name: "office, mapreduce", in: []string{"office", "mapreduce/..."}},
	{name: "loop", in: []string{"loop/..."}},
	{name: "console", in: []string{"console/..."}},
	{name: "store/memory, store/itemdir", in: []string{"store/memory", "store/itemdir"}},
	{name: "store/sqlite", in: []string{"store/sqlite"}},
	{name: "store/postgres", in: []string{"store/postgres"}},
	{name: "broker/kafka", in: []string{"broker/kafka"}},
	{name: "broker/redis", in: []string{"broker/redis/..."}},
	{name: "suites", in: []string{"store/storetest", "broker/brokertest"}},
	{name: "command line", in: []string{"internal/cli"}, lines: bound{9900, 7000}},
	{name: "rest of internal that ships", in: []string{"cmd/...", "internal/app", "internal/config", "internal/command",
		"internal/failurejson",
		"internal/itemfile", "internal/items", "internal/letterfile", "internal/runner", "internal/sqlfile", "internal/watchdog",
		"internal/where"}},
	{name: "proofs and apparatus", in: []string{"internal/proof/..."}, tests: true, lines: bound{15000, 13000}},
	{name: "bench, examples", in: []string{"bench/...", "examples/..."}},
	{name: "whole repository", tests: true, lines: bound{185200, 122000}},
}

// Sizes prints the size of every group with its bounds, and reports the groups beyond them and
// the packages of no group.
func Sizes(t *Tree, out io.Writer) []Violation {
	var wrong []Violation
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "group\tlines\tof tests\texported\tbounds")
	for _, g := range groups {
		lines, tests, exports := t.size(g)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t", g.name, lines, tests, exports)
		if g.tests {
			lines += tests
		}
		wrong = append(wrong, g.lines.print(w, g.name, "lines", lines)...)
		wrong = append(wrong, g.exports.print(w, g.name, "exported", exports)...)
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to memory
	for _, p := range t.packages {
		if !slices.ContainsFunc(groups, func(g group) bool { return matches(g.in, p.path) }) {
			wrong = append(wrong, Violation{"group-size", p.path, "this package is in no group of internal/proof/arch/groups.go"})
		}
	}
	return wrong
}

func (b bound) print(w io.Writer, group, of string, has int) []Violation {
	if b.most == 0 {
		return nil
	}
	fmt.Fprintf(w, "%d %s of %d", has, of, b.most)
	if b.wanted < b.most {
		fmt.Fprintf(w, ", wanted %d", b.wanted)
	}
	fmt.Fprint(w, "; ")
	if has <= b.most {
		return nil
	}
	return []Violation{{"group-size", group, fmt.Sprintf("%d %s, the bound is %d", has, of, b.most)}}
}

func (t *Tree) size(g group) (lines, tests, exports int) {
	for _, p := range t.packages {
		if g.in != nil && !matches(g.in, p.path) {
			continue
		}
		for _, f := range p.files {
			if f.test {
				tests += f.lines
				continue
			}
			lines += f.lines
			exports += exported(f.syntax)
		}
	}
	return lines, tests, exports
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
	name, _, _ := strings.Cut(strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*"), "[")
	return name
}
