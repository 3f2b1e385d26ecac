package policy

import (
	"regexp"
	"strings"
	"sync"
)

// Limits of what is read of an output. Both outputs of a command are read whole, as their ends are
// bounded where they are kept.
const (
	maxRead     = 512    // bytes of a line that the patterns see
	maxLinesWhy = 20_000 // lines of an output that are tried, from its end
)

// toolPatterns are the patterns of all tools, each kind as one.
type toolPatterns struct{ cause, closing, noise, summary *regexp.Regexp }

var toolTable = sync.OnceValue(func() toolPatterns {
	join := func(pattern func(t tool) string) *regexp.Regexp {
		var all []string
		for _, t := range tools {
			if p := pattern(t); p != "" {
				all = append(all, p)
			}
		}
		return regexp.MustCompile("^(?:" + strings.Join(all, "|") + ")")
	}
	return toolPatterns{
		cause:   join(func(t tool) string { return t.cause }),
		closing: join(func(t tool) string { return t.closing }),
		noise:   join(func(t tool) string { return t.noise }),
		summary: join(func(t tool) string { return t.summary }),
	}
})

// longCauses are the causes with lines after them.
var longCauses = sync.OnceValue(func() (list []longCause) {
	for _, t := range tools {
		if t.after > 0 {
			list = append(list, longCause{regexp.MustCompile("^(?:" + t.cause + ")"), t.after})
		}
	}
	return list
})

type longCause struct {
	cause *regexp.Regexp
	after int
}

// WhyOf returns the line of what a failed command printed that says why it failed, as one line of
// valid UTF-8, or "" if there is none. That is
//
//   - the last line of standard error in a form that tells an error, as "ValueError: text",
//     "fatal: text", "Caused by: text": see the table of tools;
//   - else its last line that is no frame of a stack, hint, ruler, progress, and not the closing
//     line of a tool that only called another;
//   - else the last line of standard output in such a form, or in that of a summary of tests;
//   - else a closing line.
//
// Escape sequences are left out. The time is linear in both outputs.
func WhyOf(stderr, stdout []byte) string {
	said := readOutput(stderr)
	line, closing := said.why(toolTable().cause)
	if line == "" {
		line = said.last()
	}
	if line == "" {
		printed := readOutput(stdout)
		line, _ = printed.why(toolTable().cause)
		if line == "" {
			line, _ = printed.why(toolTable().summary)
		}
	}
	if line == "" {
		line = closing
	}
	return line
}

// output holds the lines that a command printed on one stream.
type output struct{ lines []string }

func readOutput(data []byte) output {
	lines := strings.FieldsFunc(plain(data), func(r rune) bool { return r == '\n' || r == '\r' })
	return output{lines[max(len(lines)-maxLinesWhy, 0):]}
}

// why returns the last line that matches a pattern of causes, with those that belong to it, and the
// last closing line.
func (o output) why(cause *regexp.Regexp) (line, closing string) {
	for i := len(o.lines) - 1; i >= 0; i-- {
		line := head(o.lines[i], maxRead)
		switch {
		case toolTable().closing.MatchString(line):
			if closing == "" {
				closing = strings.TrimSpace(o.lines[i])
			}
		case cause.MatchString(line) && !toolTable().noise.MatchString(line):
			return o.whole(i), closing
		}
	}
	return "", closing
}

// last returns the last line that may say why.
func (o output) last() string {
	for i := len(o.lines) - 1; i >= 0; i-- {
		line := head(o.lines[i], maxRead)
		if !toolTable().noise.MatchString(line) && !toolTable().closing.MatchString(line) {
			return o.whole(i)
		}
	}
	return ""
}

// whole returns the line i without what stands before the error, and the lines that belong to it. A
// line that ends with a colon is followed by what it announces. Of a line in JSON it returns what
// that says.
func (o output) whole(i int) string {
	line := strings.TrimSpace(o.lines[i])
	if said := logged(line); said != "" {
		return said
	}
	after := 0
	if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "|-") {
		after = 1
	}
	for _, long := range longCauses() {
		if long.cause.MatchString(head(line, maxRead)) {
			after = long.after
		}
	}
	line = line[len(beforeError().FindString(head(line, maxRead))):]
	for i++; i < len(o.lines) && after > 0 && len(line) < maxRead; i++ {
		next := strings.TrimSpace(o.lines[i])
		if next == "" || toolTable().noise.MatchString(head(o.lines[i], maxRead)) {
			continue
		}
		line += " " + next
		after--
	}
	return line
}

// beforeError matches what stands before an error in its line and says nothing about it: which
// thread has thrown it, and that it was thrown.
var beforeError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^(?:Exception in thread "[^"]*" |Unhandled exception\. |\[ERROR\] FATAL UNHANDLED EXCEPTION: |Caused by: |\[cause\]: |` +
			`thread '[^']*'(?: \(\d+\))? |` +
			`(?:PHP )?Fatal error: +Uncaught |\*\* |[ \d:.kMG-]{40,}|[0-9A-F]{8,}:)`)
})

// escapes match what terminals are told: colours, moves of the cursor, titles, links.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])|" +
		"[\x00-\x08\x0e-\x1a\x7f]")
})

// plain returns an output as valid UTF-8 without what only terminals understand.
func plain(data []byte) string {
	text := string(data)
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		text = strings.ReplaceAll(text[2:], "\x00", "") // UTF-16: patterns know ASCII
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f }) {
		return text
	}
	return escapes().ReplaceAllStringFunc(text, func(s string) string {
		if s == "\x00" {
			return "\uFFFD"
		}
		return ""
	})
}
