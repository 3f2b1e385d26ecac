package arch

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// A number of JSON stays as it is written: as a float64 it would lose digits. What ships reads text
// as a float64, or JSON without a type for its numbers, only where this list gives a reason.

// floats lists the functions that may, with what makes it harmless.
var floats = []struct{ file, function, reason string }{
	{"policy/backoff_text.go", "decimal", "a factor of our own backoff"},
	{"broker/redis/foreign/rq.go", "numeral", "a time in seconds, kept in milliseconds"},
	{"broker/redis/foreign/bullmq.go", "bullmqJob", "a number of attempts"},
	{"broker/redis/foreign/values.go", "parseScore", "Redis itself keeps a score as a float64"},
	{"broker/rabbitmq/typed.go", "read", "each caller names an integer type, a text or bytes"},
	{"internal/items/value.go", "nearest", "it asks what others make of a number"},
	{"internal/command/retry_after.go", "secondsOf", "a delay in seconds"},
	{"internal/workflow/read.go", "readThreshold", "a share of our own"},
	{"internal/workflow/reader.go", "share", "a part or a factor of our own"},
	{"internal/cli/letter_bulk.go", "parseRate", "a rate of our own"},
	{"internal/cli/redrive_target.go", "parseStop", "a share in percent"},
	{"mapreduce/worktree/worktree.go", "readJSON", "files of a job of our own; values of others stay as they are written"},
	{"console/page_redrive.go", "perSecond", "a rate of our own"},
	{"loop/outlet.go", "Decode", "the caller chooses the type"},
	{"loop/dataset.go", "ReadDataset", "the caller chooses the type"},
	{"loop/deadletter.go", "UnmarshalJSON", "the caller chooses the type"},
	{"type.go", "Handle", "the caller chooses the type"},
	{"store/sqlite/conn.go", "fromJSON", "rows of our own, without a number that is not an int"},
	{"store/postgres/columns.go", "fromJSON", "rows of our own, without a number that is not an int"},
}

// checkNumbers looks for functions that read a number as a float64 and are not in the list.
func (t *Tree) checkNumbers(p *pkg, f *file) {
	for _, decl := range f.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !p.shipped(f) {
			continue
		}
		at, what := t.floating(p, f, fn)
		reason := slices.ContainsFunc(floats, func(r struct{ file, function, reason string }) bool {
			return r.file == f.name && r.function == fn.Name.Name
		})
		switch {
		case at != nil && !reason:
			t.say("float", t.where(at), "%s: a number would lose digits; keep its text, or give a reason in "+
				"internal/proof/arch/numbers.go", what)
		case at == nil && reason:
			t.say("float", t.where(fn), "%s reads no number as a float64: take it out of internal/proof/arch/numbers.go", fn.Name.Name)
		}
	}
}

// floating finds what in a function reads a number as a float64.
func (t *Tree) floating(p *pkg, f *file, fn *ast.FuncDecl) (at ast.Node, what string) {
	exact := false
	var decoder ast.Node
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || at != nil {
			return at == nil
		}
		switch called := types.ExprString(call.Fun); {
		case called == "strconv.ParseFloat", strings.HasSuffix(called, ".Float64") && len(call.Args) == 0:
			at, what = call, called
		case called == "json.NewDecoder":
			decoder = call
		case strings.HasSuffix(called, ".UseNumber"):
			exact = true
		case called == "json.Unmarshal" && len(call.Args) == 2 && t.untyped(p, f, typeOf(call.Args[1]), nil):
			at, what = call, "json.Unmarshal into "+types.ExprString(call.Args[1])+", where a number has no type"
		}
		return true
	})
	if at == nil && decoder != nil && !exact {
		return decoder, "json.NewDecoder without UseNumber"
	}
	return at, what
}

// typeOf returns the type of an expression as it is written, or nil. For a field it returns the
// expression, and untyped looks for the field.
func typeOf(x ast.Expr) ast.Expr {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return typeOf(x.X)
	case *ast.UnaryExpr:
		return typeOf(x.X)
	case *ast.CompositeLit:
		return x.Type
	case *ast.IndexExpr:
		return typeOf(x.X) // that of the list, which is as good as that of its elements
	case *ast.SelectorExpr:
		return x
	case *ast.CallExpr:
		if name := types.ExprString(x.Fun); (name == "new" || name == "make") && len(x.Args) > 0 {
			return x.Args[0]
		}
		return x.Fun // a conversion
	case *ast.Ident:
		if x.Obj == nil {
			return nil
		}
		switch d := x.Obj.Decl.(type) {
		case *ast.Field:
			return d.Type
		case *ast.ValueSpec:
			if i := slices.IndexFunc(d.Names, func(n *ast.Ident) bool { return n.Name == x.Name }); d.Type == nil && i < len(d.Values) {
				return typeOf(d.Values[i])
			}
			return d.Type
		case *ast.AssignStmt:
			i := slices.IndexFunc(d.Lhs, func(l ast.Expr) bool { return types.ExprString(l) == x.Name })
			if len(d.Lhs) == len(d.Rhs) {
				return typeOf(d.Rhs[i])
			}
		}
	}
	return nil
}

// untyped reports whether a type has a part that takes a number of JSON and is none: any, or the
// type of a caller.
func (t *Tree) untyped(p *pkg, f *file, of ast.Expr, seen []*ast.TypeSpec) bool {
	switch of := of.(type) {
	case *ast.ParenExpr:
		return t.untyped(p, f, of.X, seen)
	case *ast.StarExpr:
		return t.untyped(p, f, of.X, seen)
	case *ast.ArrayType:
		return t.untyped(p, f, of.Elt, seen)
	case *ast.MapType:
		return t.untyped(p, f, of.Value, seen)
	case *ast.InterfaceType:
		return of.Methods.NumFields() == 0
	case *ast.IndexExpr:
		return t.untyped(p, f, of.Index, seen) || t.untyped(p, f, of.X, seen)
	case *ast.StructType:
		return slices.ContainsFunc(of.Fields.List, func(field *ast.Field) bool { return t.untyped(p, f, field.Type, seen) })
	case *ast.SelectorExpr:
		owner, ok := of.X.(*ast.Ident)
		if !ok || owner.Obj != nil {
			return t.untypedField(p, f, typeOf(of.X), of.Sel.Name, seen)
		}
		for _, spec := range f.syntax.Imports {
			if to, in := inside(importPath(spec)); in && (path.Base(to) == owner.Name || to == "." && owner.Name == "nixie") {
				p := t.packageAt(to)
				spec, f := p.typeNamed(of.Sel.Name)
				return spec != nil && t.untypedType(p, f, spec, seen)
			}
		}
	case *ast.Ident:
		if of.Obj != nil && of.Obj.Kind == ast.Typ {
			spec, declared := of.Obj.Decl.(*ast.TypeSpec)
			return !declared || t.untypedType(p, f, spec, seen) // or a parameter
		}
		if types.Universe.Lookup(of.Name) != nil {
			return of.Name == "any"
		}
		spec, f := p.typeNamed(of.Name)
		return spec == nil || t.untypedType(p, f, spec, seen) // or a parameter of the receiver
	}
	return false
}

// untypedType looks at a type. One that reads its JSON itself is looked at there.
func (t *Tree) untypedType(p *pkg, f *file, spec *ast.TypeSpec, seen []*ast.TypeSpec) bool {
	return !slices.Contains(seen, spec) && !p.reads(spec.Name.Name) && t.untyped(p, f, spec.Type, append(seen, spec))
}

// untypedField looks at a field of a struct.
func (t *Tree) untypedField(p *pkg, f *file, of ast.Expr, name string, seen []*ast.TypeSpec) bool {
	switch of := of.(type) {
	case *ast.StarExpr:
		return t.untypedField(p, f, of.X, name, seen)
	case *ast.IndexExpr:
		return t.untypedField(p, f, of.X, name, seen)
	case *ast.Ident:
		if spec, f := p.typeNamed(of.Name); spec != nil {
			return t.untypedField(p, f, spec.Type, name, seen)
		}
	case *ast.StructType:
		for _, field := range of.Fields.List {
			if slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == name }) {
				return t.untyped(p, f, field.Type, seen)
			}
		}
	}
	return false
}

// typeNamed finds a type of a package.
func (p *pkg) typeNamed(name string) (*ast.TypeSpec, *file) {
	for _, f := range p.files {
		if at := f.syntax.Scope.Lookup(name); at != nil {
			spec, _ := at.Decl.(*ast.TypeSpec)
			return spec, f
		}
	}
	return nil, nil
}

// reads reports whether a type has its own UnmarshalJSON.
func (p *pkg) reads(name string) bool {
	return slices.ContainsFunc(p.files, func(f *file) bool {
		return slices.ContainsFunc(f.syntax.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Name.Name == "UnmarshalJSON" && fn.Recv != nil && receiver(fn) == name
		})
	})
}
