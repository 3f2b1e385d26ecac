package arch

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kept matches what is not edited: the file name of a decision record, and a name in JSON.
var kept = regexp.MustCompile(`\d{4}-[a-z0-9-]+\.md|retry[- ]st[o]rms?`)

// checkTexts reports words that a rule forbids.
func checkTexts(t *Tree) []Violation {
	var out []Violation
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
				out = append(out, Violation{rule.name, lineAt(name, text, at[1]), fmt.Sprintf("%q: %s", bytes.TrimSpace(text[at[0]:at[1]]),
					rule.why)})
			}
		}
	}
	return out
}

// checkWidths reports long lines of Go. A comment that stands for output, or names an address,
// cannot be wrapped.
func checkWidths(t *Tree) []Violation {
	var out []Violation
	for _, name := range slices.Sorted(maps.Keys(t.texts)) {
		if !strings.HasSuffix(name, ".go") || inTestdata(name) || under(unread, name) {
			continue
		}
		output := false
		for i, line := range strings.Split(string(t.texts[name]), "\n") {
			text := strings.TrimLeft(line, "\t ")
			isComment := strings.HasPrefix(text, "// ")
			output = isComment && (output || strings.HasPrefix(text, "// Output:"))
			limit := maxCode
			if isComment {
				limit = maxComment
			}
			width := columns(line)
			if width > limit && !output && !strings.Contains(text, "://") {
				out = append(out, Violation{"width", name + ":" + strconv.Itoa(i+1), fmt.Sprintf("%d columns, the limit is %d", width,
					limit)})
			}
		}
	}
	return out
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

// under reports whether a file is one of the paths or below one. "." has the files next to it
// alone.
func under(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return name == p || strings.HasPrefix(name, p+"/") || path.Dir(name) == strings.TrimSuffix(p, "/.")
	})
}

func lineAt(name string, data []byte, offset int) string {
	return name + ":" + strconv.Itoa(1+bytes.Count(data[:offset], []byte("\n")))
}
