package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A package variable is allowed when no code can change what it holds: it is made by one of the
// constructors, embedded from a file, named "_", or a table, which is an unexported composite
// literal that nothing in its package assigns to, deletes from, sorts or takes the address of.
// Everything else is state without an owner. Test files are free.

// checkVariables looks for package variables that can change.
func (t *Tree) checkVariables(p *pkg, f *file) {
	for _, decl := range f.syntax.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || f.test || group.Tok != token.VAR || embedded(group.Doc) {
			continue
		}
		for _, spec := range group.Specs {
			t.checkVariable(p, spec.(*ast.ValueSpec))
		}
	}
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed") })
}

func (t *Tree) checkVariable(p *pkg, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		var value ast.Expr
		if i < len(spec.Values) {
			value = spec.Values[i]
		}
		if call, is := value.(*ast.CallExpr); is && p.room.kind != proof && slices.Contains(compilers, types.ExprString(call.Fun)) {
			t.say("start", t.where(name), "%s is compiled at the start of each program: compile it in a sync.OnceValue", name.Name)
		}
		why := changeable(name.Name, value)
		if write := t.writeTo(p, name, spec); why == "" && write != nil {
			why = "it is changed at " + t.where(write)
		}
		if why != "" && name.Name != "_" && !embedded(spec.Doc) {
			t.say("package-variable", t.where(name), "%s: %s; keep state in a value that has an owner", name.Name, why)
		}
	}
}

// changeable returns why a variable of that name and value is state, or nothing.
func changeable(name string, value ast.Expr) string {
	switch v := value.(type) {
	case nil:
		return "it starts empty, so something fills it later"
	case *ast.CallExpr:
		maker, _, _ := strings.Cut(types.ExprString(v.Fun), "[")
		conversion := maker == "" && !ast.IsExported(name)
		if !conversion && !slices.Contains(constructors, maker) {
			return "only the constructors in internal/proof/arch/rules.go may fill one"
		}
	case *ast.UnaryExpr:
		if v.Op != token.AND || !strings.HasPrefix(strings.ToLower(name), "err") {
			return "it points to something that can change"
		}
	case *ast.CompositeLit:
		kind := ""
		if v.Type != nil {
			kind, _, _ = strings.Cut(types.ExprString(v.Type), ".")
		}
		switch {
		case ast.IsExported(name):
			return "it is exported, so every importer can change it: offer a function that returns a copy"
		case kind == "sync" || kind == "atomic":
			return "it is a lock or a counter"
		}
	case *ast.BasicLit:
		return "a plain value is a const"
	case *ast.FuncLit:
		return "a function is declared with func"
	default:
		return "it is not one of the forms that cannot change (see internal/proof/arch/variables.go)"
	}
	return ""
}

// writeTo finds a node in the package that changes the variable.
func (t *Tree) writeTo(p *pkg, name *ast.Ident, spec *ast.ValueSpec) ast.Node {
	var found ast.Node
	for _, f := range p.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, target := range changed(n) {
				id := rootOf(target)
				if found == nil && id != nil && id.Name == name.Name && (id.Obj == nil || id.Obj.Decl == spec) {
					found = n
				}
			}
			return found == nil
		})
	}
	return found
}

// changed lists the expressions that n changes or lets others change.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		called := types.ExprString(n.Fun)
		changes := slices.Contains([]string{"delete", "clear", "copy"}, called) ||
			strings.HasPrefix(called, "sort.") || strings.HasPrefix(called, "slices.Sort")
		if len(n.Args) > 0 && changes {
			return n.Args[:1]
		}
	}
	return nil
}

// rootOf returns the variable that an expression like v.f[i] is a part of.
func rootOf(x ast.Expr) *ast.Ident {
	for {
		switch e := x.(type) {
		case *ast.Ident:
			return e
		case *ast.SelectorExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.ParenExpr:
			x = e.X
		default:
			return nil
		}
	}
}
