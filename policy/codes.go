package policy

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Some words that differ from message to message tell one cause from another: a status, an
// SQLSTATE, an errno, the number of an error in a database, a signal, a port. Each has few values,
// so they stay.

// codeWords lists the words before a number that is a code, with its most digits. In lower case.
var codeWords = map[string]int{
	"errno": 3, "winerror": 5, "hresult": 10, "sqlcode": 5, "errcode": 5, "error_code": 5, "errorcode": 5, "err_code": 5,
	"exitcode": 3, "exit_code": 3, "returncode": 3, "exitstatus": 3, "rc": 3, "signal": 2, "grpc-status": 2, "msg": 5, "error": 5,
}

// codePhrases lists the phrases before a number that is a code.
var codePhrases = []string{
	"exit status", "exit code", "error code", "reply code", "return code", "result code", "reason code", "with code", "with status",
	"exited with", "curl", "ended with", "died with", "os error",
}

// codeFamilies lists how codes with letters begin. They stay wherever they are.
var codeFamilies = []string{"ORA-", "TNS-", "PLS-", "E11000"}

// isCode reports whether a chunk is a code: by its family, by the word before it or, for a status,
// by the phrase after it.
func (n *normaliser) isCode(code, after string) bool {
	switch {
	case code == "" || len(code) > len("0x80070005"):
		return false
	case isDigit(rune(code[0])):
		return n.isNumberCode(code, after)
	case code[0] < 'A' || code[0] > 'Z':
		return code[0] == '-' && len(code) > 1 && isDigit(rune(code[1])) && n.isNumberCode(code[1:], after)
	}
	for _, family := range codeFamilies {
		if strings.HasPrefix(code, family) {
			return true
		}
	}
	letters := strings.IndexFunc(code, isDigit)
	if letters <= 0 || strings.ContainsFunc(code, func(r rune) bool { return !isDigit(r) && (r < 'A' || r > 'Z') }) {
		return false
	}
	if n.isSQLState(code) {
		return true
	}
	digits := code[letters:] // E0308, TS2304, CS0246: where compilers and linters write them
	if len(digits) < 3 || len(digits) > 5 || letters > 6 || strings.ContainsFunc(digits, isLatinRune) {
		return false
	}
	written := bytes.TrimRight(n.out, " ")
	return isIn(beforeCode, n.lastWord()) ||
		bytes.HasSuffix(written, []byte(aNumber+":")) || bytes.HasSuffix(written, []byte(aPath+":")) ||
		strings.HasPrefix(after, ")") && bytes.HasSuffix(written, []byte("("))
}

// isNumberCode is isCode of a chunk that begins with a digit.
func (n *normaliser) isNumberCode(code, after string) bool {
	if n.isSQLState(code) || isResult(code) {
		return true
	}
	if isEnhanced(code) {
		return len(n.out) >= 3 && isStatus(string(n.out[len(n.out)-3:]))
	}
	if strings.ContainsFunc(code, func(r rune) bool { return !isDigit(r) }) {
		return false
	}
	before := n.lastWord()
	switch most := codeWords[string(before)]; {
	case string(before) == "error":
		return len(code) <= most && !isCount(after)
	case most > 0:
		return len(code) <= most
	case string(before) == "port", bytes.HasSuffix(n.out, []byte("]:")), bytes.HasSuffix(n.out, []byte(aField+":")):
		return n.keepsPort(code)
	case string(before) == "code" && n.endsAt(":=("):
		return len(code) <= 5
	}
	for _, phrase := range codePhrases {
		if n.endsWith(phrase) {
			return len(code) <= 3
		}
	}
	next := strings.TrimLeft(after, " ")
	if n.endsAt("(") && len(code) == 4 && (strings.HasPrefix(after, `, "`) || strings.HasPrefix(after, `, '`)) ||
		len(code) == 4 && bytes.Contains(n.out, []byte("SQLSTATE")) {
		return true // the number of an error in a database
	}
	if !isStatus(code) {
		return false
	}
	if isIn(beforeStatus, before) || strings.Contains(n.held, "://") || n.endsWith("status of") {
		return true
	}
	if slices.ContainsFunc(phrases, func(phrase string) bool { return strings.HasPrefix(next, phrase) }) {
		return true
	}
	failed := code >= "400"
	begins := len(n.out) == 0 && next != "" && (next[0] == ':' || next[0] >= 'A' && next[0] <= 'Z' || isDigit(rune(next[0])))
	return failed && (begins || next == "" && n.endsAt(":"))
}

// isSQLState reports whether a chunk of five digits and capitals stands where an SQLSTATE does.
func (n *normaliser) isSQLState(code string) bool {
	if len(code) != len("23505") || strings.ContainsFunc(code, func(r rune) bool { return !isDigit(r) && (r < 'A' || r > 'Z') }) {
		return false
	}
	return string(n.lastWord()) == "sqlstate" || n.endsAt("(") && n.afterCode()
}

// afterCode reports whether the word before the bracket that was written is an error with its
// number, as in: ERROR 1045 (28000).
func (n *normaliser) afterCode() bool {
	words := bytes.Fields(bytes.ToLower(bytes.TrimRight(n.out, " (")))
	return len(words) >= 2 && string(words[len(words)-2]) == "error" && isDigit(rune(words[len(words)-1][0]))
}

// isResult reports whether a chunk is the code of a result of Windows: 32 bits, of which the first
// say failed.
func isResult(code string) bool {
	return len(code) == len("0x80070005") && isHexNumber(code) && strings.ContainsRune("8Cc", rune(code[2])) && code[3] == '0'
}

func isStatus(code string) bool {
	return len(code) == 3 && code >= "100" && code <= "599" && !strings.ContainsFunc(code, func(r rune) bool { return !isDigit(r) })
}

// isEnhanced reports whether a chunk is the code that a mail server writes after its status.
func isEnhanced(code string) bool {
	return len(code) == len("5.1.1") && strings.IndexByte("245", code[0]) >= 0 && code[1] == '.' && isDigit(rune(code[2])) &&
		code[3] == '.' && isDigit(rune(code[4]))
}

// isCount reports whether the words after a number say that it counts something.
func isCount(after string) bool {
	return strings.HasPrefix(after, " of ") || strings.HasPrefix(after, " times") || strings.HasPrefix(after, "/")
}

// beforeCode lists the words before a code with letters.
var beforeCode = []string{"error", "warning", "code"}

// beforeStatus lists the words that come before a status.
var beforeStatus = []string{
	"http", "status", "statuscode", "status_code", "code", "response", "returned", "got", "received", "replied", "answered",
}

// phrases begin the texts that servers and clients write after a status.
var phrases = []string{
	"OK", "Moved ", "Bad Request", "Unauthorized", "Payment Required", "Forbidden", "Not Found", "Method Not", "Not Acceptable",
	"Proxy Auth", "Request Timeout", "Conflict", "Gone", "Length Required", "Precondition", "Payload Too", "Request Entity",
	"URI Too", "Unsupported Media", "Unprocessable", "Locked", "Too Many Requests", "Internal Server", "Not Implemented",
	"Bad Gateway", "Service Unavailable", "Gateway Timeout", "Client Error", "Server Error",
}

// lastWord returns the last word that was written, in lower case: letters, or a placeholder. It is
// valid until the next call.
func (n *normaliser) lastWord() []byte {
	written := trimmed(n.out, " :=([{,#'\"")
	begin := len(written)
	for begin > 0 {
		r, size := utf8.DecodeLastRune(written[:begin])
		if !isWordRune(r) && r != '_' && r != '<' && r != '>' {
			break
		}
		begin -= size
	}
	return appendLower(n.wordRoom[:0], written[begin:])
}

func appendLower(to, word []byte) []byte {
	for _, b := range word[max(len(word)-cap(to), 0):] {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		to = append(to, b)
	}
	return to
}

func trimmed(s []byte, marks string) []byte {
	for len(s) > 0 && strings.IndexByte(marks, s[len(s)-1]) >= 0 {
		s = s[:len(s)-1]
	}
	return s
}

func isIn(list []string, word []byte) bool {
	for _, one := range list {
		if one == string(word) {
			return true
		}
	}
	return false
}

// endsWith reports whether the text that was written ends with words. Case does not count; words
// are in lower case.
func (n *normaliser) endsWith(words string) bool {
	written := trimmed(n.out, " :=([{")
	return len(written) >= len(words) && written[len(written)-1]|0x20 == words[len(words)-1] &&
		strings.EqualFold(string(written[len(written)-len(words):]), words)
}

// endsAt reports whether the text that was written ends with one of marks.
func (n *normaliser) endsAt(marks string) bool {
	written := trimmed(n.out, " ")
	return len(written) > 0 && strings.IndexByte(marks, written[len(written)-1]) >= 0
}
