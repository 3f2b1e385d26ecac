package policy

import (
	"regexp"
	"strings"
	"sync"

	"github.com/nixie-go/nixie"
)

// passingTexts are causes that time may heal: what libc, Go's net, curl and psql print, and the
// names of errno. Adding one is a row, and a line in a test.
var passingTexts = []struct {
	reason nixie.Reason
	text   string
}{
	{nixie.ReasonTimeout,
		`timed out|i/o timeout|handshake timeout|context deadline exceeded|timeout expired|\betimedout\b`},
	{nixie.ReasonTransportUnavailable,
		`connection refused|connection reset|connection aborted|broken pipe|no route to host|network is unreachable|` +
			`host is down|actively refused|could not resolve host|couldn't connect to server|no such host\b|` +
			`temporary failure in name resolution|name or service not known|empty reply from server|` +
			`server closed the connection unexpectedly|` +
			`\b(?:econnrefused|econnreset|econnaborted|epipe|ehostunreach|enetunreach|enotfound|eai_again)\b`},
	{nixie.ReasonDependency, `the database system is (?:starting up|shutting down|in recovery mode)`},
	{nixie.ReasonResource,
		`no space left on device|cannot allocate memory|too many open files|disk quota exceeded|resource temporarily unavailable|` +
			`sorry, too many clients|remaining connection slots|\b(?:enospc|enomem|emfile|enfile)\b`},
}

// passingExits are exit codes of curl for causes that time may heal. It prints nothing with -s.
var passingExits = map[int]nixie.Reason{
	6:  nixie.ReasonTransportUnavailable, // the name of the host is not known
	7:  nixie.ReasonTransportUnavailable, // no connection
	28: nixie.ReasonTimeout,
	35: nixie.ReasonTransportUnavailable, // TLS
	52: nixie.ReasonTransportUnavailable, // no answer
	56: nixie.ReasonTransportUnavailable, // the connection broke
}

var passingPatterns = sync.OnceValue(func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(passingTexts))
	for i, p := range passingTexts {
		list[i] = regexp.MustCompile(p.text)
	}
	return list
})

// OfCommand returns what the end of a command means: as [OfExit], but a failure that OfExit does
// not know is transient if the line that says why, see [WhyOf], or an exit code of curl tells a
// cause that time may heal. It only adds reasons: no line makes a failure permanent, or a permanent
// one transient. Program is the name of the command's file, without folders.
func OfCommand(program string, code int, line string) (nixie.Class, nixie.Reason) {
	class, reason := OfExit(code)
	if class != nixie.ClassUnknown {
		return class, reason
	}
	if passes, ok := passingExits[code]; ok && program == "curl" {
		return nixie.ClassTransient, passes
	}
	line = strings.ToLower(head(line, maxChunk))
	for i, pattern := range passingPatterns() {
		if pattern.MatchString(line) {
			return nixie.ClassTransient, passingTexts[i].reason
		}
	}
	return class, reason
}
