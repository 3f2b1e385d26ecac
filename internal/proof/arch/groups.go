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

// group is a part of the repository whose size is watched. Its bounds count what ships: tests are
// printed and not bounded.
type group struct {
	name    string
	in      []string // packages, as in a room; none is all
	lines   int      // most lines; 0 is no bound
	exports int      // most exported names; 0 is no bound
}

// groups are printed in this order. A bound is a tenth above the size on the day that it was set.
// Who needs more takes something out first, or says in the decision record what the room is for.
var groups = []group{
	{name: "root package", in: []string{"."}, lines: 1850, exports: 267},
	{name: "check, filter, lease, policy, privacy", in: []string{"check", "filter", "lease", "policy", "privacy"},
		lines: 10200, exports: 191},
	{name: "telemetry, internal/serve", in: []string{"telemetry", "internal/serve"}, lines: 2849, exports: 36},
	{name: "contracts: store, broker", in: []string{"store", "store/lifecycle", "broker"}, lines: 9200, exports: 485},
	{name: "store/engine", in: []string{"store/engine"}, lines: 2500, exports: 70},
	{name: "engines: worker, redrive", in: []string{"worker", "redrive"}, lines: 5890, exports: 66},
	{name: "office, mapreduce", in: []string{"office", "mapreduce/..."}, lines: 10170, exports: 385},
	{name: "loop", in: []string{"loop/..."}, lines: 3500, exports: 168},
	{name: "local", in: []string{"local"}, lines: 130, exports: 8},
	{name: "console", in: []string{"console/..."}, lines: 5990, exports: 45},
	{name: "store/memory, store/itemdir", in: []string{"store/memory", "store/itemdir"}, lines: 3550, exports: 40},
	{name: "store/sqlite", in: []string{"store/sqlite"}, lines: 11150, exports: 51},
	{name: "store/postgres", in: []string{"store/postgres"}, lines: 10350, exports: 48},
	{name: "broker/kafka", in: []string{"broker/kafka"}, lines: 3400, exports: 41},
	{name: "broker/rabbitmq", in: []string{"broker/rabbitmq"}, lines: 3050, exports: 50},
	{name: "broker/redis", in: []string{"broker/redis/..."}, lines: 3700, exports: 65},
	{name: "suites", in: []string{"store/storetest", "broker/brokertest", "nixietest"}, lines: 17100, exports: 82},
	{name: "command line", in: []string{"internal/cli"}, lines: 13500, exports: 13},
	{name: "rest of internal that ships", in: []string{"cmd/...", "internal/app", "internal/config", "internal/command",
		"internal/itemfile", "internal/items", "internal/letterfile", "internal/lines", "internal/runner",
		"internal/spelling", "internal/sqlfile", "internal/task", "internal/watchdog", "internal/where"}, lines: 16900, exports: 370},
	{name: "internal/workflow", in: []string{"internal/workflow"}, lines: 2000, exports: 40},
	{name: "proofs and apparatus", in: []string{"internal/proof/..."}, lines: 11300, exports: 250},
	{name: "release", in: []string{"internal/release/..."}, lines: 2380},
	{name: "bench, examples", in: []string{"bench/...", "examples/..."}, lines: 9880, exports: 150},
	{name: "whole repository"},
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
		wrong = append(wrong, bound(w, g.name, "lines", lines, g.lines)...)
		wrong = append(wrong, bound(w, g.name, "exported", exports, g.exports)...)
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

// bound prints how much of a bound is used, and reports what is beyond it. No bound prints nothing.
func bound(w io.Writer, group, of string, has, most int) []Violation {
	if most == 0 {
		return nil
	}
	fmt.Fprintf(w, "%d %s of %d; ", has, of, most)
	if has <= most {
		return nil
	}
	return []Violation{{"group-size", group, fmt.Sprintf("%d %s, the bound is %d", has, of, most)}}
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
