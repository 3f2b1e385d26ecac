package arch

import "fmt"

// checkImports reports imports that a rule forbids, and imports for effect.
func checkImports(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				path := importPath(spec)
				for _, rule := range importRules {
					if (p.shipped(f) || rule.tests) && rule.holds(p.path) && matches(rule.imports, path) {
						out = append(out, Violation{"import", t.where(spec), fmt.Sprintf("%s imports %s: %s", p.path, path, rule.why)})
					}
				}
				if spec.Name != nil && spec.Name.Name == "_" && path != "embed" && p.shipped(f) {
					out = append(out, Violation{"import-for-effect", t.where(spec),
						fmt.Sprintf("%s imports %s for what it does to global state: there are no registries here", p.path, path)})
				}
			}
		}
	}
	return out
}

// checkLibraries reports libraries outside the rooms that may see them.
func checkLibraries(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			if !p.shipped(f) {
				continue
			}
			for _, spec := range f.syntax.Imports {
				path := importPath(spec)
				for _, rule := range libraryRules {
					if rule.holds(p.path) && matches(rule.imports, path) {
						out = append(out, Violation{"library", t.where(spec), fmt.Sprintf("%s imports %s: %s", p.path, path, rule.why)})
					}
				}
			}
		}
	}
	return out
}

func (r importRule) holds(room string) bool {
	return (len(r.in) == 0 || matches(r.in, room)) && !matches(r.except, room)
}
