package policy

import (
	"bytes"
	"slices"
	"strings"
)

// Some words that differ from message to message tell one cause from another. They are an HTTP
// status, an SQLSTATE, an errno, an exit code or the name of a field. Each has few values, so
// normalising keeps them.

// isCode reports whether a chunk is a code: by the word before it or, for a status, by the phrase
// after it.
func (n *normaliser) isCode(code, after string) bool {
	isOther := func(r rune) bool { return !isDigit(r) && (r < 'A' || r > 'Z') }
	if code == "" || len(code) > sqlState || strings.ContainsFunc(code, isOther) {
		return false
	}
	before := n.lastWord()
	switch {
	case before == "sqlstate":
		return len(code) == sqlState
	case strings.ContainsFunc(code, isLatinRune):
		return false
	case before == "errno", before == "error" && n.endsWith("os error"),
		before == "status" && n.endsWith("exit status"), before == "code" && n.endsWith("exit code"):
		return len(code) <= 3
	}
	isPrefix := func(phrase string) bool { return strings.HasPrefix(strings.TrimLeft(after, " "), phrase) }
	return len(code) == 3 && code >= "100" && code <= "599" &&
		(slices.Contains(beforeStatus, before) || slices.ContainsFunc(phrases, isPrefix))
}

const sqlState = len("23505")

// beforeStatus lists the words that come before a status.
var beforeStatus = []string{"http", "status", "statuscode", "status_code", "code", "response", "returned", aURL}

// phrases begin the texts that servers write after a status.
var phrases = []string{
	"OK", "Moved ", "Bad Request", "Unauthorized", "Payment Required", "Forbidden", "Not Found", "Method Not", "Not Acceptable",
	"Proxy Auth", "Request Timeout", "Conflict", "Gone", "Length Required", "Precondition", "Payload Too", "Request Entity",
	"URI Too", "Unsupported Media", "Unprocessable", "Locked", "Too Many Requests", "Internal Server", "Not Implemented",
	"Bad Gateway", "Service Unavailable", "Gateway Timeout",
}

// lastWord returns the last word that was written, in lower case: letters, or a placeholder.
func (n *normaliser) lastWord() string {
	written := bytes.TrimRight(n.out, " :=([{,#'\"")
	begin := bytes.LastIndexFunc(written, func(r rune) bool { return !isWordRune(r) && r != '_' && r != '<' && r != '>' })
	return strings.ToLower(string(written[begin+1:]))
}

// endsWith reports whether the text that was written ends with words. Case does not count; words
// are in lower case.
func (n *normaliser) endsWith(words string) bool {
	return bytes.HasSuffix(bytes.ToLower(bytes.TrimRight(n.out, " :=([{")), []byte(words))
}

const maxConstant = 24 // bytes of a quoted word that normalising keeps

// isConstant reports whether a quoted text is a constant, such as EUR, or a name from a schema, as
// the word before it tells. Other names differ from message to message.
func (n *normaliser) isConstant(quoted string) bool {
	isOther := func(r rune) bool { return !isLatinRune(r) && r != '_' }
	if len(quoted) < 2 || len(quoted) > maxConstant || strings.ContainsFunc(quoted, isOther) {
		return false
	}
	return quoted == strings.ToUpper(quoted) || slices.Contains(beforeName, n.lastWord())
}

// beforeName lists the words that come before a name from a schema.
var beforeName = []string{
	"field", "fields", "column", "relation", "table", "constraint", "index", "parameter", "argument", "property", "attribute",
	"element", "option", "flag", "method", "function", "named",
}

func isLatinRune(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
