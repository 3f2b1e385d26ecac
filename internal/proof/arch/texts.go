package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkTexts reports words that no text file may hold.
func checkTexts(t *Tree) []Violation {
	var out []Violation
	for _, name := range slices.Sorted(maps.Keys(t.texts)) {
		if name == selfExempt || name == "go.sum" {
			continue
		}
		for _, rule := range textRules {
			for _, at := range rule.pattern.FindAllIndex(t.texts[name], -1) {
				out = append(out, Violation{rule.name, lineAt(name, t.texts[name], at[1]),
					fmt.Sprintf("%q: %s", bytes.TrimSpace(t.texts[name][at[0]:at[1]]), rule.why)})
			}
		}
		if strings.HasSuffix(name, ".go") {
			continue // read by checkUnfinished, comments only
		}
		for _, at := range unfinished.FindAllIndex(t.texts[name], -1) {
			out = append(out, unfinishedAt(lineAt(name, t.texts[name], at[1])))
		}
	}
	return out
}

// checkUnfinished reports marks of work that is not done, in comments and
// panics.
func checkUnfinished(t *Tree) []Violation {
	var out []Violation
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, group := range f.syntax.Comments {
				for _, comment := range group.List {
					if f.name != selfExempt && unfinished.MatchString(comment.Text) {
						out = append(out, unfinishedAt(t.where(comment)))
					}
				}
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if isStub(n) {
					out = append(out, Violation{"stub", t.where(n), "what is not finished is not there: leave the function out"})
				}
				return true
			})
		}
	}
	return out
}

func unfinishedAt(where string) Violation {
	return Violation{"unfinished", where, "a mark of unfinished work: finish it, or take it to the tracker"}
}

// isStub reports whether n is a panic that stands for missing code.
func isStub(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || !isIdent(call.Fun, "panic") || len(call.Args) != 1 {
		return false
	}
	stubbed := false
	ast.Inspect(call.Args[0], func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			stubbed = stubbed || err == nil && stub.MatchString(text)
		}
		return true
	})
	return stubbed
}

func lineAt(name string, data []byte, offset int) string {
	return name + ":" + strconv.Itoa(1+bytes.Count(data[:offset], []byte("\n")))
}
