package arch

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kept matches what is not edited: the file name of a decision record, and a name in JSON.
var kept = regexp.MustCompile(`\d{4}-[a-z0-9-]+\.md|retry[- ]st[o]rms?`)

// checkTexts looks for texts that a rule forbids, and for long lines of Go.
func (t *Tree) checkTexts() {
	for _, name := range slices.Sorted(maps.Keys(t.texts)) {
		if under(unread, name) {
			continue
		}
		text := kept.ReplaceAll(t.texts[name], nil)
		for _, rule := range textRules {
			if !strings.HasSuffix(name, rule.ends) || rule.present && under(past, name) {
				continue
			}
			for _, at := range rule.pattern.FindAllIndex(text, -1) {
				where := name + ":" + strconv.Itoa(1+bytes.Count(text[:at[1]], []byte("\n")))
				t.say(rule.name, where, "%q: %s", bytes.TrimSpace(text[at[0]:at[1]]), rule.why)
			}
		}
		if strings.HasSuffix(name, ".go") && !inTestdata(name) {
			t.checkWidths(name)
		}
	}
}

// checkWidths looks for long lines. A comment that stands for output, or names an address, cannot
// be wrapped.
func (t *Tree) checkWidths(name string) {
	output := false
	for i, line := range strings.Split(string(t.texts[name]), "\n") {
		text := strings.TrimLeft(line, "\t ")
		isComment := strings.HasPrefix(text, "// ")
		output = isComment && (output || strings.HasPrefix(text, "// Output:"))
		limit := maxCode
		if isComment {
			limit = maxComment
		}
		if width := columns(line); width > limit && !output && !strings.Contains(text, "://") {
			t.say("width", name+":"+strconv.Itoa(i+1), "%d columns, the limit is %d", width, limit)
		}
	}
}

// columns counts the columns of a line.
func columns(line string) int {
	n := 0
	for _, r := range line {
		if r == '\t' {
			n = (n/tabWidth + 1) * tabWidth
		} else {
			n++
		}
	}
	return n
}

// under reports whether a file is one of the paths or below one.
func under(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}
