package policy

import (
	"slices"
	"strings"
)

// Quoted words differ from message to message, unless they name a part of a program or of a
// schema: a field, a method, a type. Those say what to repair, so they stay.

const (
	maxConstant = 24 // bytes of a quoted constant that stays
	maxName     = 64 // bytes of a quoted name that stays
)

// beforeName lists the words that come before a quoted name.
var beforeName = []string{
	"field", "fields", "column", "relation", "table", "constraint", "index", "parameter", "parameters", "argument", "arguments",
	"property", "properties", "attribute", "element", "option", "flag", "method", "function", "named", "keyerror", "key", "reading",
	"setting", "variable", "symbol", "class", "module", "import", "type", "header", "param", "constant", "enum", "name", "invoke",
	"because", "attributeerror", "nameerror",
}

// beforeValue lists phrases that end with a word before a name, and come before any other value.
var beforeValue = []string{"host name", "domain name", "server name", "user name", "file name", "queue name", "bucket name"}

// afterName lists what comes after a quoted name.
var afterName = []string{
	" is required", " is missing", " is not defined", " is not a function", " object ", " field", " column", " property", " parameter",
	" argument", " attribute", " is null", " is undefined", " is a required",
}

// typeNames lists types that texts quote.
var typeNames = []string{
	"int", "str", "float", "bool", "list", "dict", "tuple", "set", "bytes", "string", "number", "object", "array", "null", "undefined",
}

// isConstant reports whether a quoted text is a constant, such as EUR, or a type.
func isConstant(quoted string) bool {
	return len(quoted) >= 2 && len(quoted) <= maxConstant &&
		!strings.ContainsFunc(quoted, func(r rune) bool { return !isLatinRune(r) && r != '_' }) &&
		(quoted == strings.ToUpper(quoted) || slices.Contains(typeNames, quoted))
}

// isNamed reports whether a quoted text is a name, as the words around it tell. Other names differ
// from message to message.
func (n *normaliser) isNamed(quoted, after string) bool {
	if len(quoted) < 2 || len(quoted) > maxName || !isName(quoted) {
		return false
	}
	if slices.ContainsFunc(beforeValue, n.endsWith) {
		return false
	}
	if isIn(beforeName, n.lastWord()) || n.endsWith("return value of") {
		return true
	}
	if slices.ContainsFunc(afterName, func(s string) bool { return strings.HasPrefix(after, s) }) {
		return true
	}
	return isCode(quoted) && !n.endsWith("value") || n.braces > 0 && n.endsAt("{,") && strings.HasPrefix(strings.TrimLeft(after, " "), ":")
}

// isCode reports whether a name has a call or a scope, as compilers quote code: Option::unwrap().
func isCode(name string) bool {
	scope := strings.Index(name, "::")
	return strings.Contains(name, "()") || scope > 0 && scope+len("::") < len(name)
}

// isName reports whether a quoted text can name a part of a program: letters with marks between
// them, and single digits after letters.
func isName(s string) bool {
	if !isLatin(s[0]) && strings.IndexByte("_$<", s[0]) < 0 || isRandom(s) {
		return false
	}
	for i := range len(s) {
		b, before := s[i], s[max(i-1, 0)]
		switch {
		case isLatin(b), strings.IndexByte("_.$-<>[]()", b) >= 0:
		case isDigit(rune(b)) && isLatin(before):
		case b == ':' && (before == ':' || strings.HasPrefix(s[i:], "::")):
		default:
			return false
		}
	}
	return true
}

// beforeReason lists the words before a quoted text that is the error itself.
var beforeReason = []string{
	"error", "err", "message", "msg", "reason", "desc", "detail", "details", "description", "cause", "exception", "code", "status",
	"error_description", "title", "type",
}

// isReason reports whether the quoted text that comes next is the error itself, as in desc = "…".
func (n *normaliser) isReason() bool {
	return n.endsAt(":=") && isIn(beforeReason, n.lastWord())
}
