package privacy

import "strings"

// nameClass classifies the name of a value.
type nameClass int

const (
	harmless nameClass = iota
	weak               // a secret in the forms of programs, an ordinary word in prose
	secret
	credentials // a header: a scheme and what belongs to it
	cookies     // a header: pairs
)

const maxNameLength = 64 // bytes of a name that count

// secretEndings lists the endings of names of secrets, without separators.
var secretEndings = [...]string{
	"password", "passwd", "passphrase", "passcode", "dbpass", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey",
	"signingkey", "encryptionkey", "authkey", "accountkey", "sharedkey", "masterkey", "subscriptionkey", "sessionkey", "keymaterial",
	"credential", "credentials", "sessionid", "sessid", "connectsid", "secretid", "xamzsignature", "xgoogsignature",
}

// classify classifies a name. Only its ending counts, because token_type and password_file hold no
// secret.
func classify(name string) nameClass {
	if len(name) > maxNameLength {
		name = name[len(name)-maxNameLength:]
	}
	var buffer [maxNameLength]byte
	plain, parts := buffer[:0], 1
	for i := range len(name) {
		switch b := name[i]; {
		case b == '_' || b == '-' || b == '.' || b == ' ':
			parts++
		case b >= 'A' && b <= 'Z':
			plain = append(plain, b|0x20)
		default:
			plain = append(plain, b)
		}
	}
	if len(plain) < 2 {
		return harmless
	}
	return classifyPlain(string(plain), parts)
}

func classifyPlain(plain string, parts int) nameClass {
	switch plain {
	case "pwd", "pw", "pass", "sig", "auth":
		return weak
	}
	switch plain[len(plain)-1] { // excludes most names
	case 'd', 'e', 't', 'n', 'y', 'l', 's':
	default:
		return harmless
	}
	switch {
	case strings.HasSuffix(plain, "authorization"):
		return credentials
	case strings.HasSuffix(plain, "cookie"):
		return cookies
	case parts > 1 && (strings.HasSuffix(plain, "pass") || strings.HasSuffix(plain, "pwd")) && plain != "oldpwd":
		return weak
	}
	for _, ending := range secretEndings {
		if strings.HasSuffix(plain, ending) {
			return secret
		}
	}
	return harmless
}

// stateWord reports whether a word describes a secret, such as expired or missing, instead of being
// one.
func stateWord(word string) bool {
	switch strings.ToLower(word) {
	case "null", "nil", "<nil>", "none", "undefined", "true", "false", "yes", "no", "ok", "eof", "empty", "missing", "required", "unset",
		"expired", "invalid", "unknown", "malformed", "revoked", "denied", "rejected", "refused", "failed", "unauthorized", "forbidden",
		"redacted", "[redacted]", "incorrect", "wrong", "mismatch", "absent", "timeout", "optional", "set", "valid", "unexpected":
		return true
	}
	return false
}

// harmlessValue reports whether a value is no secret under any name: a word for nothing, or a
// reference to a variable.
func harmlessValue(value string) bool {
	switch strings.ToLower(value) {
	case "", "null", "nil", "<nil>", "none", "undefined", "true", "false", Hidden:
		return true
	}
	if len(value) > maxNameLength {
		return false
	}
	inner, braced := strings.CutPrefix(value, "${")
	if braced && strings.HasSuffix(inner, "}") {
		return nameOnly(inner[:len(inner)-1])
	}
	variable, isOne := strings.CutPrefix(value, "$")
	return isOne && nameOnly(variable) && strings.ToUpper(variable) == variable
}

// nameOnly reports whether s can be the name of a variable.
func nameOnly(s string) bool {
	for i := range len(s) {
		if b := s[i]; !isLetter(b) && b != '_' && (i == 0 || !isDigit(b)) {
			return false
		}
	}
	return s != ""
}

// random reports whether a word looks generated: it mixes letters with digits,
// or capitals into small letters.
func random(word string) bool {
	digits, small, inner := 0, 0, 0
	for i := range len(word) {
		switch b := word[i]; {
		case isDigit(b):
			digits++
		case b >= 'a' && b <= 'z':
			small++
		case b >= 'A' && b <= 'Z' && i > 0:
			inner++
		case b >= 'A' && b <= 'Z':
			small++
		}
	}
	return digits > 0 && small+inner > 0 || small > 0 && inner > 0
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// isWord reports whether b may be in a word. Bytes of letters beyond ASCII may.
func isWord(b byte) bool { return isLetter(b) || isDigit(b) || b == '_' || b >= 0x80 }

func isName(b byte) bool { return isLetter(b) || isDigit(b) || b == '_' || b == '-' || b == '.' }

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

func isSpace(b byte) bool { return isBlank(b) || b == '\n' || b == '\r' || b == '\v' || b == '\f' }

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' }
