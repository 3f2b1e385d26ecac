package privacy

import "strings"

const maxUserInfo = 1 << 10 // bytes of user and password in a URL

// url hides the password of a URL, or the path of a URL that is a secret as a whole. The scanner is
// at the colon after the scheme.
func (s *scanner) url() bool {
	from := s.at + len("://")
	if s.secretPath(from) {
		return true
	}
	reach := s.text[from:min(len(s.text), from+maxUserInfo)]
	endsURL := func(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == '`' || r == '<' || r == '>' }
	if n := strings.IndexFunc(reach, endsURL); n >= 0 {
		reach = reach[:n]
	}
	authority := reach
	if n := strings.IndexAny(reach, "/?#"); n >= 0 {
		authority = reach[:n]
	}
	colon, at := strings.IndexByte(authority, ':'), strings.LastIndexByte(authority, '@')
	if at < 0 && colon >= 0 && !numeric(authority[colon+1:]) {
		at = strings.LastIndexByte(reach, '@') // a password with a slash in it
	}
	switch {
	case at < 0:
		return false
	case colon >= 0 && colon < at:
		return s.hide(from+colon+1, from+at)
	case colon < 0 && at >= minLoneUser && random(authority[:at]):
		return s.hide(from, from+at) // a token instead of user and password
	}
	return false
}

const minLoneUser = 16 // bytes of a user in a URL that may be a token

// secretPaths are addresses that need no other credential.
var secretPaths = [...]string{
	"hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "api.telegram.org/bot",
}

func (s *scanner) secretPath(from int) bool {
	for _, p := range secretPaths {
		if strings.HasPrefix(s.text[from:], p) {
			from += len(p)
			return s.hide(from, s.endOf(from, func(b byte) bool { return isCredential(b) || b == ':' || b == '*' || b == '%' }))
		}
	}
	return false
}

// driverName hides the password in user:password@tcp(host)/database. The scanner is at the at sign.
func (s *scanner) driverName() {
	protocol := s.endOf(s.at+1, isLetter)
	if protocol == s.at+1 || s.byteAt(protocol) != '(' {
		return
	}
	start := max(s.done, s.startOf(s.at, maxUserInfo, func(b byte) bool { return !isSpace(b) && !isQuote(b) && b != '=' }))
	if colon := strings.IndexByte(s.text[start:s.at], ':'); colon >= 0 {
		s.hide(start+colon+1, s.at)
	}
}

// dash reads a word that begins with a dash: a key in PEM, or an option.
func (s *scanner) dash() bool {
	switch {
	case strings.HasPrefix(s.rest(), "-----BEGIN "):
		return s.privateKey()
	case strings.HasPrefix(s.rest(), "-----END "):
		s.endOfPrivateKey()
		return false
	}
	return s.option()
}

const maxPEMLabel = 64 // bytes of the label of a PEM block

// label reads the label of a PEM line and returns the end of the line, if the label is that of a
// private key.
func (s *scanner) label(from int) (end int, ok bool) {
	near := s.text[from:min(len(s.text), from+maxPEMLabel)]
	n := strings.Index(near, "-----")
	if n < 0 || !strings.HasSuffix(strings.TrimSuffix(near[:n], " BLOCK"), "PRIVATE KEY") {
		return 0, false
	}
	return from + n + len("-----"), true
}

// privateKey hides the body of a private key. If the end was cut off it hides all that can be a
// part of the key.
func (s *scanner) privateKey() bool {
	from, ok := s.label(s.at + len("-----BEGIN "))
	if !ok {
		return false
	}
	to := from
	for to < len(s.text) && isPEM(s.text[to]) && !strings.HasPrefix(s.text[to:], "-----") {
		to++
	}
	return s.hide(from, to)
}

// endOfPrivateKey hides the lines before the end of a key whose beginning was cut off.
func (s *scanner) endOfPrivateKey() {
	if _, ok := s.label(s.at + len("-----END ")); !ok {
		return
	}
	start := s.at
	for start > s.done && isPEM(s.text[start-1]) && strings.IndexByte(" -*", s.text[start-1]) < 0 {
		start--
	}
	if strings.TrimSpace(s.text[start:s.at]) != "" {
		s.hide(start, s.at)
	}
}

// isPEM reports whether b may be in a PEM block, including its headers and escaped line ends.
func isPEM(b byte) bool {
	return isCredential(b) || isSpace(b) || b == '\\' || b == ':' || b == ',' || b == '*'
}

// option hides the value of an option such as --password, also in a printed list of arguments. It
// also hides the password in -u user:password.
func (s *scanner) option() bool {
	if b := s.byteAt(s.at - 1); s.at > 0 && !isSpace(b) && !isQuote(b) && strings.IndexByte("[(,", b) < 0 {
		return false
	}
	from := s.endOf(s.at, func(b byte) bool { return b == '-' })
	end := s.endOf(from, isName)
	if from-s.at > 2 || end == from || end-from > maxNameLength {
		return false
	}
	name := s.text[from:end]
	start := end
	if isQuote(s.byteAt(start)) {
		start++ // a printed list has quotes around each argument
	}
	if s.byteAt(start) == ',' {
		start++
	}
	if start = s.endOf(start, isBlank); start == end || start >= len(s.text) {
		return false
	}
	user := name == "u" || name == "user" || name == "proxy-user"
	if class := classify(name); !user && (class == harmless || class == weak) {
		return false
	}
	v, ok := s.value(start)
	if !ok {
		return false
	}
	word := s.text[v.from:v.to]
	switch {
	case user:
		colon := strings.IndexByte(word, ':')
		return colon > 0 && colon+1 < len(word) && !numeric(word[colon+1:]) && !strings.HasPrefix(word[colon:], "://") &&
			s.hide(v.from+colon+1, v.to)
	case word[0] == '-' || harmlessValue(word) || stateWord(word), !v.quoted && len(word) < 4 && small(word):
		return false // use --token to log in
	}
	return s.hide(v.from, v.to)
}
