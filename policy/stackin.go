package policy

import (
	"strings"

	"github.com/nixie-go/nixie"
)

// StackIn returns the stack in the output of a program of a language in the table, or "": from the
// line before its first frame to its last frame, and the error that follows where it stands last.
// At most [nixie.MaxStack] bytes of it count, the newest.
func StackIn(output []byte) string {
	lines := strings.Split(plain(output), "\n")
	first, last := goroutines(lines)
	names := func(line string) bool { return strings.HasPrefix(line, "panic: ") }
	var of reader
	for i := 0; first < 0 && i < len(readers()); i++ {
		of = readers()[i]
		first, last = of.span(lines)
		names = of.names
	}
	if first < 0 {
		return ""
	}
	first = beginning(lines, first, names)
	if last++; of.name == "rust" && last < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[last]), "at ") {
		last++ // the file of the last frame
	}
	for ; of.newestLast && last < len(lines); last++ {
		if line := lines[last]; line != "" && line == strings.TrimLeft(line, " \t") {
			last++
			break // else the line is the code of the last frame
		}
	}
	stack := strings.TrimRight(strings.Join(lines[first:last], "\n"), "\n")
	return tail(stack, nixie.MaxStack)
}

// names reports whether a line names an error.
func (r *reader) names(line string) bool {
	if r.name == "rust" {
		return strings.Contains(line, " panicked at ")
	}
	return r.kindOf(line, true, false) != ""
}

// linesOfError limits the lines of an error before its first frame.
const linesOfError = 8

// beginning returns the line that names the error of a stack, or the line before its first frame.
func beginning(lines []string, first int, names func(string) bool) int {
	from := first
	for i := first - 1; i >= max(first-linesOfError, 0); i-- {
		if !names(head(lines[i], maxChunk)) {
			continue
		}
		if from = i; !strings.HasPrefix(strings.TrimSpace(lines[i]), "---> ") {
			break // else it is an inner error
		}
	}
	if from == first && first > 0 && strings.TrimSpace(lines[first-1]) != "" {
		return first - 1
	}
	return from
}

// goroutines finds the first goroutine and the last line of a file.
func goroutines(lines []string) (first, last int) {
	first, last = -1, -1
	for i, line := range lines {
		switch {
		case first < 0 && strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(strings.TrimRight(line, "\r"), ":"):
			first = i
		case first >= 0 && strings.HasPrefix(line, "\t") && strings.Contains(line, ".go:"):
			last = i
		}
	}
	if last < 0 {
		first = -1
	}
	return first, last
}

// span finds the first and the last frame.
func (r *reader) span(lines []string) (first, last int) {
	first, last = -1, -1
	for i, line := range lines {
		if r.read(head(line, maxChunk)).function == "" {
			continue
		}
		if last = i; first < 0 {
			first = i
		}
	}
	return first, last
}
