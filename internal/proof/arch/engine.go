package arch

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// Each verb of a store is decided once, in store/engine. The rooms that compare stores decide for
// themselves: they are the second opinion on each verb.

// offTheEngine lists what must not know the engine, and what of them must not know the rules of
// lifecycle either.
var offTheEngine = []struct {
	path string
	not  []string
}{
	{"store/memory", []string{"store/engine"}},
	{"store/storetest", []string{"store/engine", "store/lifecycle"}},
	{"internal/proof/histories", []string{"store/engine", "store/lifecycle"}},
}

// drivers are the rooms that keep facts for the engine.
var drivers = []string{"store/sqlite", "store/postgres"}

// decided lists the functions of contracts, most of them of lifecycle, by which the engine decides
// a verb that has moved to it. A driver that called one would decide that verb once more. It grows
// verb by verb.
var decided = []struct{ verb, function string }{
	{"Resolve", "lifecycle.Refuse"},
	{"Resolve", "lifecycle.ItemOf"},
	{"Resolve", "lifecycle.NeedsKey"},
	{"Resolve", "lifecycle.Past"},
	{"Resolve", "lifecycle.Prolonged"},
	{"Resolve", "lifecycle.Edited"},
	{"Resolve", "lifecycle.Overtaken"},
	{"Adjust", "lifecycle.RefuseNotices"},
	{"Amend", "lifecycle.Changed"},
	{"Amend", "lifecycle.MayLeave"},
	{"Amend", "lifecycle.TakesKey"},
	{"Adopt", "lifecycle.CameBack"},
	{"Adopt", "lifecycle.Adopted"},
	{"Adopt", "lifecycle.AdoptedLetter"},
	{"Documents", "lifecycle.Document"},
	{"Settle", "lifecycle.Settled"},
	{"Settle", "lifecycle.Learn"},
	{"Settle", "lifecycle.Lost"},
	{"the sweep", "lifecycle.Success"},
	{"Once", "nixie.CheckName"},
	{"Complete of a Tx", "store.CheckSettlement"},
	{"Unblock", "store.NoStream"},
	{"Enqueue", "lifecycle.Admits"},
	{"Enqueue", "store.CheckMessages"},
	{"Enqueue", "store.Replaced"},
	{"Prune", "store.PrunedLetter"},
	{"Prune", "store.PrunedEntries"},
}

// moved lists the methods of the same kind. In a driver they are called on the verbs of the engine
// alone.
var moved = []string{"Resolve", "Regroup", "Amend", "DieElsewhere", "Settle", "Abandon", "Die", "Follow", "Notice",
	"Kept"}

// checkEngine looks for second opinions that ask the first, and for drivers that decide.
func (t *Tree) checkEngine(p *pkg, f *file) {
	for _, spec := range f.syntax.Imports {
		target, ours := inside(importPath(spec))
		for _, room := range offTheEngine {
			if ours && room.path == p.path && slices.Contains(room.not, target) {
				t.say("second-opinion", t.where(spec), "%s imports %s: what compares the stores decides for itself", p.path, target)
			}
		}
	}
	if f.test || !slices.Contains(drivers, p.path) {
		return
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, on := calledOn(call)
		for _, d := range decided {
			if on+"."+name == d.function {
				t.say("driver-decides", t.where(n), "%s calls %s: store/engine decides %s for it", p.path, d.function, d.verb)
			}
		}
		if slices.Contains(moved, name) && on != "engine" && !strings.HasSuffix(on, ".verbs") {
			t.say("driver-decides", t.where(n), "%s calls %s of %s: store/engine decides that verb for it", p.path, name, on)
		}
		return true
	})
}

// calledOn returns the name of a method or of a function of a package, and what it is called on.
func calledOn(call *ast.CallExpr) (name, on string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	return sel.Sel.Name, types.ExprString(sel.X)
}
