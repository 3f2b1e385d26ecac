package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A package variable is allowed when no code can change what it holds:
//
//   - it is made by one of the constructors (errors, patterns, templates,
//     message types);
//   - it is embedded from a file;
//   - it is a table: an unexported composite literal that nothing in its
//     package assigns to, deletes from, sorts or takes the address of;
//   - it is named "_", which only checks a type.
//
// Everything else is state without an owner. Test files are free.

// checkVariables reports package variables that can change.
func checkVariables(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, decl := range f.syntax.Decls {
				group, ok := decl.(*ast.GenDecl)
				if !ok || group.Tok != token.VAR {
					continue
				}
				for _, spec := range group.Specs {
					out = append(out, t.checkVariable(p, group, spec.(*ast.ValueSpec))...)
				}
			}
		}
	}
	return out
}

func (t *Tree) checkVariable(p *pkg, group *ast.GenDecl, spec *ast.ValueSpec) []Violation {
	var out []Violation
	for i, name := range spec.Names {
		var value ast.Expr
		if i < len(spec.Values) {
			value = spec.Values[i]
		}
		why := changeable(name.Name, value, embedded(group.Doc) || embedded(spec.Doc))
		if why == "" {
			if write := t.writeTo(p, name, spec); write != nil {
				why = "it is changed at " + t.where(write)
			}
		}
		if why != "" && name.Name != "_" {
			out = append(out, Violation{"package-variable", t.where(name),
				fmt.Sprintf("%s: %s; package variables are constants in all but name: keep state in a value that has an owner", name.Name,
					why)})
		}
	}
	return out
}

// changeable says why a variable of that name and value is state, or nothing.
func changeable(name string, value ast.Expr, embed bool) string {
	if embed {
		return ""
	}
	switch v := value.(type) {
	case nil:
		return "it starts empty, so something fills it later"
	case *ast.CallExpr:
		return madeBy(name, v)
	case *ast.UnaryExpr:
		if v.Op == token.AND && strings.HasPrefix(strings.ToLower(name), "err") {
			return ""
		}
		return "it points to something that can change"
	case *ast.CompositeLit:
		if ast.IsExported(name) {
			return "it is exported, so every importer can change it: offer a function that returns a copy"
		}
		if sel, ok := v.Type.(*ast.SelectorExpr); ok && isIdent(sel.X, "sync", "atomic") {
			return "it is a lock or a counter"
		}
		return ""
	case *ast.BasicLit:
		return "a plain value is a const"
	case *ast.FuncLit:
		return "a function is declared with func"
	}
	return "it is not one of the forms that cannot change (see internal/proof/arch/variables.go)"
}

// madeBy judges a variable that is the result of a call.
func madeBy(name string, call *ast.CallExpr) string {
	made := ""
	callee := call.Fun
	if generic, ok := callee.(*ast.IndexExpr); ok {
		callee = generic.X
	}
	switch fun := callee.(type) {
	case *ast.Ident:
		made = fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			made = x.Name + "." + fun.Sel.Name
		}
	case *ast.ArrayType:
		if !ast.IsExported(name) {
			return ""
		}
	}
	if !slices.Contains(constructors, made) {
		return "only the constructors in internal/proof/arch/rules.go may fill one"
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
		sel, isSel := n.Fun.(*ast.SelectorExpr)
		sorts := isSel && (isIdent(sel.X, "sort") || isIdent(sel.X, "slices") && strings.HasPrefix(sel.Sel.Name, "Sort"))
		if len(n.Args) > 0 && (sorts || isIdent(n.Fun, "delete", "clear", "copy")) {
			return n.Args[:1]
		}
	}
	return nil
}

// rootOf is the variable that an expression like v.f[i] is a part of.
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

func isIdent(x ast.Expr, names ...string) bool {
	id, ok := x.(*ast.Ident)
	return ok && slices.Contains(names, id.Name)
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed") })
}
