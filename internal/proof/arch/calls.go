package arch

import (
	"fmt"
	"go/ast"
	"slices"
)

// checkCalls reports uses of names that a rule forbids.
func checkCalls(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, rule := range callRules {
			if len(rule.in) > 0 && !matches(rule.in, p.path) || matches(rule.except, p.path) {
				continue
			}
			taken := 0
			for _, f := range p.files {
				if p.shipped(f) == (rule.files == shipped) {
					out = append(out, rule.check(t, f, &taken)...)
				}
			}
		}
	}
	return out
}

// check reads one file. It counts in taken how often a name was taken as a
// value in the package so far.
func (r callRule) check(t *Tree, f *file, taken *int) []Violation {
	var out []Violation
	called := map[ast.Node]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if isCall {
			called[call.Fun] = true
		}
		if isCall && r.files == tests && inBubble(f, call) {
			return false
		}
		name, ok := f.selected(n, r.pkg)
		if !ok || !r.forbids(name) {
			return true
		}
		if !called[n] {
			*taken++
			if *taken <= r.value {
				return true
			}
		}
		out = append(out, Violation{"call", t.where(n), fmt.Sprintf("%s.%s: %s", r.pkg, name, r.why)})
		return true
	})
	return out
}

func (r callRule) forbids(name string) bool {
	if r.only != nil {
		return !slices.Contains(r.only, name)
	}
	return slices.Contains(r.names, name)
}

// inBubble reports whether call runs its function with virtual time.
func inBubble(f *file, call *ast.CallExpr) bool {
	name, ok := f.selected(call.Fun, "testing/synctest")
	return ok && name == "Test"
}

// checkGoroutines reports go statements in the quiet rooms.
func checkGoroutines(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			if !p.shipped(f) || !slices.Contains(quiet, p.path) {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if stmt, ok := n.(*ast.GoStmt); ok {
					out = append(out, Violation{"goroutine", t.where(stmt), p.path + " starts no goroutine: the caller owns concurrency here"})
				}
				return true
			})
		}
	}
	return out
}

// checkInits reports init functions.
func checkInits(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, decl := range f.syntax.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if ok && fn.Recv == nil && fn.Name.Name == "init" {
					out = append(out, Violation{"init", t.where(fn), "an init function runs in an order nobody reads: build the value where it is used, or in internal/app"})
				}
			}
		}
	}
	return out
}

// checkSkips reports tests that are skipped without a word.
func checkSkips(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			if !f.test && p.room.kind != proof {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				silent := ok && (sel.Sel.Name == "SkipNow" || sel.Sel.Name == "Skip" && len(call.Args) == 0)
				if silent && isTesting(sel.X) {
					out = append(out, Violation{"skip", t.where(n), "a skipped test says why: t.Skip(reason)"})
				}
				return true
			})
		}
	}
	return out
}

// isTesting reports whether x has one of the names that tests are given.
func isTesting(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "b", "f", "tb"}, id.Name)
}
