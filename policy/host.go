package policy

import (
	"slices"
	"strconv"
	"strings"
)

// Names of machines differ from message to message. The server that a URL names does not: it says
// what is broken, and so does the port of a connection that failed.

const firstEphemeral = 32768 // ports from here on are drawn for one connection

// How sure the last label makes that a dotted name is that of a machine, and of no part of a
// program. What else may say so is a dash, a digit or a port, or a third label.
const (
	needsMark = 1 + iota
	needsMarkOrLabel
	isSure
)

// endOfHost returns how sure a last label makes it, or 0.
func endOfHost(label string) int {
	switch label {
	case "com", "org", "edu", "gov", "mil", "arpa":
		return isSure
	case "net", "io", "dev", "biz", "cloud", "local", "internal", "lan", "corp", "localdomain", "svc", "cluster", "intranet", "example",
		"test", "invalid",
		"ae", "ar", "at", "au", "be", "bg", "br", "ca", "ch", "cl", "cn", "co", "cz", "de", "dk", "ee", "es", "eu", "fi", "fr", "gr",
		"hk", "hr", "hu", "ie", "il", "ir", "jp", "ke", "kr", "kz", "lt", "lu", "lv", "mx", "ng", "nl", "no", "nz", "pe", "pk", "pl",
		"pt", "ro", "ru", "sa", "se", "sg", "sk", "su", "th", "tr", "tw", "ua", "uk", "uz", "vn", "za":
		return needsMarkOrLabel
	case "app", "info", "int", "is", "it", "me", "name", "us", "ws":
		return needsMark
	}
	return 0
}

// Second labels under which a country gives names.
var countryParts = []string{"ac", "co", "com", "edu", "gov", "ne", "net", "or", "org"}

// isHost reports whether a dotted name is that of a machine, with a port or without.
func isHost(name string, port bool) bool {
	if strings.HasPrefix(name, "www.") {
		return true
	}
	labels, marked := 0, port
	var last, second string
	first, _, _ := strings.Cut(name, ".")
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			return false
		}
		labels++
		last, second = label, last
	}
	for i := range len(name) {
		b := name[i]
		if b >= 'A' && b <= 'Z' || b == '_' {
			return false
		}
		marked = marked || b == '-' || isDigit(rune(b))
	}
	if labels < 2 || strings.ContainsFunc(last, isDigit) {
		return false
	}
	if len(last) == 2 && labels > 2 && slices.Contains(countryParts, second) {
		return true
	}
	sure := endOfHost(last)
	if endOfHost(first) > 0 && sure < isSure { // the name of a Java package
		return sure > 0 && marked && labels > 2
	}
	return sure == isSure || sure > 0 && marked || sure == needsMarkOrLabel && labels > 2
}

// isIPv4 reports whether a name is an address of four numbers.
func isIPv4(name string) bool {
	parts := 0
	for part := range strings.SplitSeq(name, ".") {
		if len(part) < 1 || len(part) > 3 || strings.ContainsFunc(part, func(r rune) bool { return !isDigit(r) }) ||
			len(part) == 3 && part > "255" {
			return false
		}
		parts++
	}
	return parts == 4
}

// beforeHost lists the words that come before the name of a machine.
var beforeHost = []string{"host", "hostname", "lookup", "enotfound", "eai_again"}

// host writes the placeholder of a machine at the beginning of c, with the port behind it if that
// stays. It returns how much of c that is, or 0.
func (n *normaliser) host(c string) int {
	begin := 0
	end := hostChars(c)
	if end < len(c) && c[end] == '/' { // a name and its address, as Java writes them
		if rest := hostChars(c[end+1:]); isIPv4(c[end+1:][:rest]) {
			begin = end + 1
			end = begin + rest
		}
	}
	name := strings.TrimRight(c[begin:end], ".-")
	end = begin + len(name)
	port := portAt(c[end:])
	if !isIPv4(name) && (begin > 0 || !isHost(name, port != "" || isIn(beforeHost, n.lastWord()))) {
		return 0
	}
	n.placeholder(aHost)
	if port != "" {
		if n.keepsPort(port) {
			n.literal(":" + port)
		}
		end += 1 + len(port)
	}
	return end
}

func hostChars(c string) int {
	for i := range len(c) {
		if b := c[i]; !isASCIIWord(b) && b != '.' && b != '-' && b != '_' {
			return i
		}
	}
	return len(c)
}

// server writes the name of a machine without dots and its port, if that stays.
func (n *normaliser) server(c string) int {
	end := strings.IndexByte(c, ':')
	if end <= 0 || hostChars(c[:end]) < end || !isLatin(c[0]) {
		return 0
	}
	port := portAt(c[end:])
	if len(c) != end+1+len(port) || !n.keepsPort(port) {
		return 0
	}
	n.runs(c[:end])
	n.literal(":" + port)
	return len(c)
}

// portAt returns the port that c begins with, after a colon, or "".
func portAt(c string) string {
	if len(c) < 2 || c[0] != ':' {
		return ""
	}
	end := 1
	for end < len(c) && isDigit(rune(c[end])) {
		end++
	}
	if end == 1 || end > len(":65535") || end < len(c) && (isASCIIWord(c[end]) || c[end] == '.') {
		return ""
	}
	return c[1:end]
}

// keepsPort reports whether a port says which server is down.
func (n *normaliser) keepsPort(port string) bool {
	p, err := strconv.Atoi(port)
	return err == nil && p > 0 && p < firstEphemeral && n.saysUnreachable()
}

// saysUnreachable reports whether the text is about a connection that failed.
func (n *normaliser) saysUnreachable() bool {
	if n.unreachable == 0 {
		n.unreachable = -1
		text := head(n.text, maxSearched)
		for _, says := range unreachable {
			if strings.Contains(text, says) {
				n.unreachable = 1
				break
			}
		}
	}
	return n.unreachable > 0
}

const maxSearched = 4 << 10 // bytes of a text in which it may say that a connection failed

var unreachable = []string{
	"refused", "Refused", "REFUSED", " reset", "Reset", "ECONNRESET", "unreachable", "Unreachable", "UNREACH", "ailed to connect",
	"imed out", "i/o timeout", "an't connect", "ETIMEDOUT",
}

// url writes the scheme, the server and the port of a URL. A label of the server that is numbered
// or random is masked.
func (n *normaliser) url(c string) int {
	at := strings.Index(c, "://")
	if at <= 0 {
		return 0
	}
	server := c[at+len("://"):]
	if end := strings.IndexAny(server, "/?#"); end >= 0 {
		server = server[:end]
	}
	server = server[strings.LastIndexByte(server, '@')+1:] // without user and password
	name, port, _ := strings.Cut(server, ":")
	if isIPv4(name) {
		name = aHost
	} else {
		name = maskedLabels(name)
	}
	if p, err := strconv.Atoi(port); err == nil && p > 0 && p < firstEphemeral {
		name += ":" + port
	}
	n.placeholder(c[:at] + "://" + name)
	return len(c)
}

func maskedLabels(name string) string {
	if !strings.ContainsFunc(name, isDigit) && len(name) < letterID {
		return name
	}
	labels := strings.Split(name, ".")
	for i, label := range labels {
		if strings.ContainsFunc(label, isDigit) || isRandom(label) {
			labels[i] = anID
		}
	}
	return strings.Join(labels, ".")
}
