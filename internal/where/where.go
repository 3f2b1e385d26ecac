// Package where selects letters and items by an expression, such as item.priority > 5 &&
// failure_count < 3.
//
// Items come from other systems, so no item is an error. A missing field is null, and a comparison
// of values that have no order is false. All values of a CSV file are texts, so a comparison with a
// number reads a text as a number. The language has
//
//	|| or OR   && and AND   ! not NOT
//	== = != < <= > >= contains startsWith endsWith matches in
//	numbers, "texts" or 'texts', true, false, null or nil, [lists], (…)
//	item.a.b, item["a b"], item.list[0]   and the facts that [Facts] names
//	len lower upper is_null is_not_null is_number is_string is_bool is_array is_object
//	contains starts_with ends_with matches length
//
// in this order, the weakest first.
package where

import (
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
)

// maxText limits the bytes of an expression.
const maxText = 4 << 10

// Expr is a parsed expression. It is not safe for concurrent use.
type Expr struct {
	root    node
	missing map[string][]string // its paths that no item has had so far
	failure bool                // a fact of it is about a failure
}

// fact returns a value of a letter that is not part of its item.
type fact func(*nixie.Letter) any

// facts lists the names that an expression may use in addition to item.
var facts = map[string]fact{
	"id":                     func(l *nixie.Letter) any { return l.Message.Key },
	"queue":                  func(l *nixie.Letter) any { return l.Message.Queue },
	"type":                   func(l *nixie.Letter) any { return l.Message.Type },
	"status":                 func(l *nixie.Letter) any { return string(l.Status) },
	"reason":                 func(l *nixie.Letter) any { return string(l.Reason) },
	"class":                  func(l *nixie.Letter) any { return string(l.Class) },
	"failure_count":          func(l *nixie.Letter) any { return count(l.Message.Attempts) },
	"redrives":               func(l *nixie.Letter) any { return count(l.Message.Redrives) },
	"reprocess_eligible":     func(l *nixie.Letter) any { return l.Redrivable },
	"manual_review_required": func(l *nixie.Letter) any { return l.NeedsReview },
	"error_signature":        func(l *nixie.Letter) any { return l.Signature },
	"error_message":          func(l *nixie.Letter) any { return l.Message.LastFailure },
	"error_type":             func(l *nixie.Letter) any { return last(l).Type },
	"step_failed":            func(l *nixie.Letter) any { return last(l).Step },
}

// Facts lists the names that an expression may use in addition to item.
func Facts() []string { return slices.Sorted(maps.Keys(facts)) }

func last(l *nixie.Letter) *nixie.Failure {
	if len(l.History) == 0 {
		return &nixie.Failure{}
	}
	return &l.History[len(l.History)-1]
}

// Parse reads an expression. Errors are of [nixie.CodeInvalid] and name the position.
func Parse(text string) (*Expr, error) {
	if len(text) > maxText {
		return nil, nixie.Errorf(nixie.CodeInvalid, "the expression has %d bytes: give at most %d", len(text), maxText)
	}
	p := parser{text: text, e: &Expr{missing: map[string][]string{}}}
	root, err := p.parse()
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "the expression %q cannot be read: %w", text, err)
	}
	p.e.root = root
	return p.e, nil
}

// Matches reports whether an expression is true for a letter with its body.
func (e *Expr) Matches(l *nixie.Letter) bool {
	env := &env{letter: l, item: itemOf(&l.Message)}
	for name, path := range e.missing {
		if hasPath(env.item, path) {
			delete(e.missing, name)
		}
	}
	return e.root.value(env) == true
}

// Failures reports whether the expression looks at failures, so that letters need their history.
func (e *Expr) Failures() bool { return e.failure }

// Missing lists the fields of the expression that no item so far has had, by name.
func (e *Expr) Missing() []string { return slices.Sorted(maps.Keys(e.missing)) }

// itemOf returns the body as JSON. A body that is not JSON becomes an object with the field line.
func itemOf(m *nixie.Message) any {
	if m.Type != items.TypeLine {
		if item, ok := items.Value(m.Body); ok {
			return item
		}
	}
	return map[string]any{items.LineField: string(m.Body)}
}

// hasPath reports whether a value has a path.
func hasPath(v any, path []string) bool {
	for _, name := range path {
		object, _ := v.(map[string]any)
		inner, ok := object[name]
		if !ok {
			return false
		}
		v = inner
	}
	return true
}
