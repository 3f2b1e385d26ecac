package arch

import (
	"go/ast"
	"go/types"
	"slices"
)

// checkSleeps reports tests that sleep in real time.
func checkSleeps(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			if p.shipped(f) {
				continue // the linter's forbidigo knows who may
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				called := types.ExprString(call.Fun)
				if called == "synctest.Test" {
					return false // time is virtual there
				}
				if called == "time.Sleep" {
					out = append(out, Violation{"sleep", t.where(n),
						"a sleep is a guess: wait for the event, inject the clock, or sleep inside synctest.Test"})
				}
				return true
			})
		}
	}
	return out
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
					out = append(out, Violation{"goroutine", t.where(stmt), p.path +
						" starts no goroutine: the caller owns concurrency here"})
				}
				return true
			})
		}
	}
	return out
}
