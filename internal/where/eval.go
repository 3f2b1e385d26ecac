package where

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
)

// env holds the letter and the item that an expression is evaluated for.
type env struct {
	letter *nixie.Letter
	item   any
}

// node is a part of an expression. Values are those of JSON: nil, bool, string, []any and
// map[string]any, and numbers: json.Number of an item, items.Number of the rest.
type node interface{ value(*env) any }

type (
	literal  struct{ v any }
	item     struct{}
	factNode struct{ fact fact }
	member   struct{ of, at node }
	list     []node
	notNode  struct{ of node }
	andNode  struct{ left, right node }
	orNode   struct{ left, right node }
	compare  struct {
		left, right node
		holds       func(left, right any) bool
	}
	call struct {
		of []node
		do func(args []any) any
	}
)

func (n literal) value(*env) any    { return n.v }
func (item) value(e *env) any       { return e.item }
func (n factNode) value(e *env) any { return n.fact(e.letter) }
func (n notNode) value(e *env) any  { return n.of.value(e) != true }
func (n andNode) value(e *env) any  { return n.left.value(e) == true && n.right.value(e) == true }
func (n orNode) value(e *env) any   { return n.left.value(e) == true || n.right.value(e) == true }

func (n compare) value(e *env) any { return n.holds(n.left.value(e), n.right.value(e)) }

func (n list) value(e *env) any { return n.values(e) }

func (n list) values(e *env) []any {
	all := make([]any, len(n))
	for i := range n {
		all[i] = n[i].value(e)
	}
	return all
}

func (n call) value(e *env) any { return n.do(list(n.of).values(e)) }

// value returns the member with a name, or the element at an index; a negative index counts from
// the end. It returns nil when there is none.
func (n member) value(e *env) any {
	at := n.at.value(e)
	switch of := n.of.value(e).(type) {
	case map[string]any:
		if name, ok := at.(string); ok {
			return of[name]
		}
	case []any:
		n, _ := number(at)
		if index, ok := n.Index(); ok && isNumber(at) {
			if index < 0 {
				index += len(of)
			}
			if index >= 0 && index < len(of) {
				return of[index]
			}
		}
	}
	return nil
}

// comparisons maps the operators that compare two values.
var comparisons = map[string]func(left, right any) bool{
	"==":         same,
	"=":          same,
	"!=":         func(l, r any) bool { return !same(l, r) },
	"<":          func(l, r any) bool { order, ok := order(l, r); return ok && order < 0 },
	"<=":         func(l, r any) bool { order, ok := order(l, r); return ok && order <= 0 },
	">":          func(l, r any) bool { order, ok := order(l, r); return ok && order > 0 },
	">=":         func(l, r any) bool { order, ok := order(l, r); return ok && order >= 0 },
	"contains":   containsValue,
	"in":         func(l, r any) bool { return containsValue(r, l) },
	"startsWith": func(l, r any) bool { return compareTexts(l, r, strings.HasPrefix) },
	"endsWith":   func(l, r any) bool { return compareTexts(l, r, strings.HasSuffix) },
}

// containsValue reports whether a list has a value, an object has a name, or a text has another
// text.
func containsValue(all, one any) bool {
	switch all := all.(type) {
	case []any:
		return slices.ContainsFunc(all, func(v any) bool { return same(v, one) })
	case map[string]any:
		name, ok := one.(string)
		_, is := all[name]
		return ok && is
	}
	return compareTexts(all, one, strings.Contains)
}

// same compares two values; in lists and objects a number is the same as a number only.
func same(left, right any) bool {
	if order, ok := order(left, right); ok {
		return order == 0
	}
	switch l := left.(type) {
	case []any:
		r, ok := right.([]any)
		return ok && slices.EqualFunc(l, r, sameInside)
	case map[string]any:
		r, ok := right.(map[string]any)
		return ok && maps.EqualFunc(l, r, sameInside)
	}
	return left == right
}

func sameInside(left, right any) bool { return isNumber(left) == isNumber(right) && same(left, right) }

func compareTexts(left, right any, holds func(string, string) bool) bool {
	l, is := left.(string)
	r, are := right.(string)
	return is && are && holds(l, r)
}

// order compares two texts, or two numbers; one of the numbers may be a text.
func order(left, right any) (int, bool) {
	l, isText := left.(string)
	r, areTexts := right.(string)
	if isText && areTexts {
		return strings.Compare(l, r), true
	}
	a, ok := number(left)
	if !ok {
		return 0, false
	}
	b, ok := number(right)
	return a.Compare(b), ok
}

// number returns a number, or the number that a text shows. 007 and 0x7 are names.
func number(v any) (items.Number, bool) {
	switch n := v.(type) {
	case items.Number:
		return n, true
	case json.Number:
		return items.ParseNumber(string(n))
	case string:
		return items.ParseNumber(strings.TrimSpace(n))
	}
	return items.Number{}, false
}

func isNumber(v any) bool {
	switch v.(type) {
	case items.Number, json.Number:
		return true
	}
	return false
}

// count returns a whole number as a value.
func count(n int) any {
	number, _ := items.ParseNumber(strconv.Itoa(n))
	return number
}

// function is a function of the language, with the bounds of its number of arguments.
type function struct {
	least, most int
	do          func(args []any) any
}

var functions = map[string]function{
	"len":         {1, 1, func(a []any) any { return size(a[0]) }},
	"length":      {1, 2, length},
	"lower":       {1, 1, func(a []any) any { return mapText(a[0], strings.ToLower) }},
	"upper":       {1, 1, func(a []any) any { return mapText(a[0], strings.ToUpper) }},
	"contains":    {2, 2, func(a []any) any { return containsValue(a[0], a[1]) }},
	"starts_with": {2, 2, func(a []any) any { return compareTexts(a[0], a[1], strings.HasPrefix) }},
	"ends_with":   {2, 2, func(a []any) any { return compareTexts(a[0], a[1], strings.HasSuffix) }},
	"is_null":     {1, 1, func(a []any) any { return a[0] == nil }},
	"is_not_null": {1, 1, func(a []any) any { return a[0] != nil }},
	"is_number":   {1, 1, func(a []any) any { return isNumber(a[0]) }},
	"is_string":   {1, 1, is[string]},
	"is_bool":     {1, 1, is[bool]},
	"is_array":    {1, 1, is[[]any]},
	"is_object":   {1, 1, is[map[string]any]},
}

func is[T any](a []any) any {
	_, ok := a[0].(T)
	return ok
}

// size returns the number of characters of a text, or of values of a list or an object.
func size(v any) any {
	switch v := v.(type) {
	case string:
		return count(utf8.RuneCountInString(v))
	case []any:
		return count(len(v))
	case map[string]any:
		return count(len(v))
	}
	return nil
}

// length returns the size; with a second argument it compares the size with that.
func length(a []any) any {
	if len(a) == 1 {
		return size(a[0])
	}
	n := size(a[0])
	return n != nil && same(n, a[1])
}

func mapText(v any, by func(string) string) any {
	if text, ok := v.(string); ok {
		return by(text)
	}
	return nil
}

// matching makes the comparison with a pattern.
func matching(pattern *regexp.Regexp) func(left, right any) bool {
	return func(left, _ any) bool {
		text, ok := left.(string)
		return ok && pattern.MatchString(text)
	}
}
