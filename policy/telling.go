package policy

import (
	"bytes"
	"slices"
	"strings"
)

// Of what differs from message to message some tells one cause from another: an HTTP
// status, an SQLSTATE, an errno, an exit code, the name of a field. There are few of
// each, and they stay as they are.

// tells reports whether a chunk is a code, by the word before it or, of a status, by
// the phrase after it.
func (n *normaliser) tells(code, after string) bool {
	if code == "" || len(code) > sqlState || strings.ContainsFunc(code, func(r rune) bool { return !isDigit(r) && (r < 'A' || r > 'Z') }) {
		return false
	}
	before := n.before()
	switch {
	case before == "sqlstate":
		return len(code) == sqlState
	case strings.ContainsFunc(code, isLatinRune):
		return false
	case before == "errno", before == "error" && n.said("os error"), before == "status" && n.said("exit status"), before == "code" && n.said("exit code"):
		return len(code) <= 3
	}
	return len(code) == 3 && code >= "100" && code <= "599" && (slices.Contains(beforeStatus, before) ||
		slices.ContainsFunc(phrases, func(p string) bool { return strings.HasPrefix(strings.TrimLeft(after, " "), p) }))
}

const sqlState = len("23505")

// beforeStatus are the last words before a status.
var beforeStatus = []string{"http", "status", "statuscode", "status_code", "code", "response", "returned", aURL}

// phrases begin the reasons that servers write after a status.
var phrases = []string{
	"OK", "Moved ", "Bad Request", "Unauthorized", "Payment Required", "Forbidden", "Not Found", "Method Not", "Not Acceptable", "Proxy Auth",
	"Request Timeout", "Conflict", "Gone", "Length Required", "Precondition", "Payload Too", "Request Entity", "URI Too", "Unsupported Media",
	"Unprocessable", "Locked", "Too Many Requests", "Internal Server", "Not Implemented", "Bad Gateway", "Service Unavailable", "Gateway Timeout",
}

// before is the last word that was written, in lower case: letters, or a placeholder.
func (n *normaliser) before() string {
	written := bytes.TrimRight(n.out, " :=([{,#'\"")
	begin := bytes.LastIndexFunc(written, func(r rune) bool { return !isWordRune(r) && r != '_' && r != '<' && r != '>' })
	return strings.ToLower(string(written[begin+1:]))
}

// said reports whether what was written ends with words in small letters.
func (n *normaliser) said(words string) bool {
	return bytes.HasSuffix(bytes.ToLower(bytes.TrimRight(n.out, " :=([{")), []byte(words))
}

const maxTelling = 24 // bytes of a quoted word that stays

// named reports whether a quoted text is a constant, such as EUR, or the name of what
// a schema has, as the word before it says. Names of people and things differ.
func (n *normaliser) named(quoted string) bool {
	if len(quoted) < 2 || len(quoted) > maxTelling || strings.ContainsFunc(quoted, func(r rune) bool { return !isLatinRune(r) && r != '_' }) {
		return false
	}
	return quoted == strings.ToUpper(quoted) || slices.Contains(beforeName, n.before())
}

// beforeName are the last words before the name of something that a schema has.
var beforeName = []string{
	"field", "fields", "column", "relation", "table", "constraint", "index", "parameter", "argument", "property", "attribute",
	"element", "option", "flag", "method", "function", "named",
}

func isLatinRune(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
