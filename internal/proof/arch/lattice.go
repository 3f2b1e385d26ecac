package arch

import (
	"fmt"
	"slices"
	"strings"
)

// checkFloor looks for imports that do not go down, imports of the root package from outside the
// standard library, and imports for effect.
func (t *Tree) checkFloor(p *pkg, f *file) {
	if f.test || !p.known {
		return
	}
	for _, spec := range f.syntax.Imports {
		path := importPath(spec)
		target, ours := inside(path)
		if why := refused(p.room, target); ours && why != "" {
			t.say("floor", t.where(spec), "%s imports %s: %s", p.path, target, why)
		}
		if p.path == "." && !isStandard(path) && !ours {
			t.say("root-std-only", t.where(spec),
				"%s: the root package imports the standard library alone, so that every program can import it", path)
		}
		if spec.Name != nil && spec.Name.Name == "_" && path != "embed" && p.shipped(f) {
			t.say("import-for-effect", t.where(spec),
				"%s imports %s for what it does to global state: there are no registries here", p.path, path)
		}
	}
}

// refused returns why from must not import the package, or nothing.
func refused(from room, path string) string {
	to, known := roomOf(path)
	switch {
	case !known:
		return "it is not in the floor plan"
	case from.only != nil && !slices.Contains(from.only, path):
		return fmt.Sprintf("it may import %s only", strings.Join(from.only, ", "))
	case from.only != nil || from.kind == proof:
		return ""
	case to.kind == proof:
		return "it is for tests and does not ship"
	case to.kind == hidden && from.path != assembler:
		return fmt.Sprintf("only %s knows concrete stores, brokers and privacy; take what it makes by an interface or option", assembler)
	case slices.Contains(from.sees, path):
		return ""
	case to.floor == from.floor:
		return fmt.Sprintf("both lie on floor %d, and packages of one floor do not see each other; meet in a contract below or in the "+
			"assembly above",
			to.floor)
	case to.floor > from.floor:
		return fmt.Sprintf("floor %d must not know floor %d: imports go down only", from.floor, to.floor)
	}
	return ""
}
