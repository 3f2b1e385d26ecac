package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// fingerprintVersion names the algorithm. Whatever changes a fingerprint needs
// another one, so that groups of two versions are never taken for each other.
const fingerprintVersion = "v1-"

// Signature names the group that a failure belongs to: a label for people, such
// as
//
//	command-failed[exit 1]: open <path>: no such file
//
// and a fingerprint for machines. Failures of one cause share both though IDs,
// numbers, paths, times and quoted strings in their texts differ; another step,
// exit code, reason or class is another group, and so is another place in the
// code when a Go stack is known. Line numbers and addresses do not count, so
// that the next build keeps the group.
//
// The label is one line of at most [MaxLabel] bytes of printable UTF-8. Time is
// linear in the text and the stack.
func Signature(f *nixie.Failure) (label, fingerprint string) {
	return signature(f, string(appendShape(nil, f)))
}

// appendShape adds to a text that is empty what the text of f has in common with those
// of its group.
func appendShape(empty []byte, f *nixie.Failure) []byte {
	text := f.Text
	if n := len(f.Step); n > 0 && strings.HasPrefix(text, f.Step) && strings.HasPrefix(text[n:], ": ") {
		text = text[n+len(": "):]
	}
	return appendNormal(empty, text)
}

// signature is Signature of a failure whose text has the shape.
func signature(f *nixie.Failure, shape string) (label, fingerprint string) {
	step := oneLine(f.Step)
	var marks, exit string
	if step != "" {
		marks = "step " + step
	}
	if f.ExitCode != nil {
		exit = strconv.Itoa(*f.ExitCode)
		if marks != "" {
			marks += ", "
		}
		marks += "exit " + exit
	}
	label = oneLine(string(f.Reason))
	if marks != "" {
		label += "[" + marks + "]"
	}
	if shape != "" {
		label += ": " + shape
	}
	parts := make([]byte, 0, 512)
	for _, part := range [...]string{string(f.Class), string(f.Reason), step, exit} {
		parts = append(append(parts, part...), 0)
	}
	parts = append(parts, shape...)
	for _, name := range frames(f.Stack) {
		parts = append(append(parts, 0), name...)
	}
	sum := sha256.Sum256(parts)
	return shorten(label, MaxLabel), fingerprintVersion + hex.EncodeToString(sum[:8])
}

// frames lists the functions at the top of a Go stack, as debug.Stack writes
// it: names only. What is above a panic is the machinery that caught it.
func frames(stack string) []string {
	var names []string
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, "created by ") {
			break
		}
		name := frame(line)
		switch {
		case name == "panic":
			names = names[:0]
		case name == "" || strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "runtime/"):
		default:
			names = append(names, name)
		}
	}
	return names[:min(len(names), signatureFrames)]
}

// frame is the function that a line of a stack names, or "".
func frame(line string) string {
	if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "goroutine ") {
		return ""
	}
	line = strings.TrimRight(line, "\r\n")
	end := strings.LastIndexByte(line, '(')
	if end <= 0 || !strings.HasSuffix(line, ")") {
		return ""
	}
	return line[:end]
}

// shorten cuts a label and shows that it did.
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
