package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// byHand stands in a fingerprint for the type of an error whose group is named by hand. So
// an error whose text is the name is in another group.
const byHand = "\x01"

// fingerprintVersion names the algorithm. A change of the algorithm needs another version, so that
// groups of two versions never mix.
const fingerprintVersion = "v3-"

// Signature names the group of a failure: a label for people, such as
//
//	command-failed[exit 1]: open <path>: no such file
//
// and a fingerprint for machines. Failures of one cause share both, although IDs, numbers, paths,
// times and quoted strings in their texts differ. A difference in one of these makes another group:
//
//	class, reason, step, exit code
//	the other words of the text, and those that say what to repair: see the list below
//	the type of the error, or of the innermost one of the chain that its stack tells
//	the functions at the top of a Go stack, without line numbers and addresses; of other languages
//	the newest function that is no library's
//
// A failure whose Group is set has that name instead of text, type and stack.
//
// So the next build keeps the groups. The label names the function of a panic, and that of another
// language than Go. Of words that differ these stay: the server of a URL, a status or the code of
// an error, the port of a connection that failed, a quoted name of a field, a method or a type.
//
// The label is one line of printable UTF-8, at most [MaxLabel] bytes. The time is linear in the
// text and the stack.
func Signature(f *nixie.Failure) (label, fingerprint string) { return SignatureOf(f, nil) }

// SignatureOf is [Signature] for a failure of a message. Single words of the text that are whole
// values of its body, if that is JSON of at most 64 KiB, do not make groups. A failure without
// text, type and stack is grouped by the type of the message. For a nil message it is Signature.
func SignatureOf(f *nixie.Failure, m *nixie.Message) (label, fingerprint string) {
	if m == nil {
		return signature(f, string(appendShape(nil, f, nil)), "")
	}
	return signature(f, string(appendShape(nil, f, newFields(m.Body))), m.Type)
}

// appendShape appends the normalised text of f, without its step, to an empty slice, whose memory
// it uses.
func appendShape(empty []byte, f *nixie.Failure, body *fields) []byte {
	if f.Group != "" {
		return append(empty, oneLine(f.Group)...)
	}
	text := f.Text
	if n := len(f.Step); n > 0 && strings.HasPrefix(text, f.Step) && strings.HasPrefix(text[n:], ": ") {
		text = text[n+len(": "):]
	}
	if !strings.ContainsFunc(strings.TrimSpace(text), isBlank) {
		body = nil // a text of one word is all that there is of the error
	}
	return appendNormal(empty, text, body)
}

// signature is Signature for a failure whose text has the shape, of a message of a type.
func signature(f *nixie.Failure, shape, of string) (label, fingerprint string) {
	step := oneLine(f.Step)
	var marks, exit string
	if step != "" {
		marks = "step " + step
	}
	if f.ExitCode != nil {
		exit = strconv.Itoa(*f.ExitCode)
		marks = joined(marks, "exit "+exit)
	}
	kind, names, where := stackOf(f)
	if f.Group != "" {
		kind, names, where = byHand, nil, ""
	}
	if where != "" {
		marks = joined(marks, "in "+oneLine(where))
	}
	if f.Text != "" || f.Type != "" || f.Stack != "" {
		of = "" // the error says more
	} else if of != "" {
		marks = joined(marks, "of "+oneLine(of))
	}
	label = oneLine(string(f.Reason))
	said := strings.TrimPrefix(shape, label+": ")
	if marks != "" {
		label += "[" + marks + "]"
	}
	if said != "" {
		label += ": " + said
	}
	parts := make([]byte, 0, 512)
	for _, part := range [...]string{string(f.Class), string(f.Reason), step, exit} {
		parts = append(append(parts, part...), 0)
	}
	parts = append(append(append(parts, shape...), 0), kind...)
	for _, name := range names {
		parts = append(append(parts, 0), name...)
	}
	if of != "" {
		parts = append(append(parts, 0, 0), of...)
	}
	sum := sha256.Sum256(parts)
	return shorten(label, MaxLabel), fingerprintVersion + hex.EncodeToString(sum[:8])
}

// stackOf returns what the stack of a failure adds to its fingerprint, and the function for its
// label.
func stackOf(f *nixie.Failure) (kind string, names []string, where string) {
	kind = f.Type
	if f.Stack == "" {
		return kind, nil, ""
	}
	if isGo(f.Stack) {
		names = frames(f.Stack)
		if f.Reason == nixie.ReasonPanic && len(names) > 0 {
			where = names[0][strings.LastIndexByte(names[0], '/')+1:]
		}
		return kind, names, where
	}
	at := siteOf(f.Stack)
	if at.kind != "" {
		kind = at.kind
	}
	if at.function == "" {
		return kind, nil, ""
	}
	return kind, []string{at.function}, at.function
}

// joined adds a mark to others.
func joined(marks, mark string) string {
	if marks == "" {
		return mark
	}
	return marks + ", " + mark
}

// shorten cuts a label and marks the cut.
func shorten(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	return head(s, limit-len(mark)) + mark
}

// oneLine makes s one printable line.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return s
	}
	return strings.Join(strings.Fields(printable(s)), " ")
}
