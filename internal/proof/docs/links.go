package docs

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Link is a link of a document to a file of the repository.
type Link struct {
	Line   int
	Target string // as written
}

var (
	inlineLink    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	referenceLink = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?`)
	attributeLink = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
	codeSpan      = regexp.MustCompile("`[^`]*`")
	heading       = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	namedAnchor   = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
	linkInHeading = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	scheme        = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// Links lists the links of a document that stay in the repository. Links to
// elsewhere are not followed: a test must not depend on the network.
func Links(text string) []Link {
	var links []Link
	for i, line := range outsideFences(text) {
		line = codeSpan.ReplaceAllString(line, "")
		for _, form := range []*regexp.Regexp{inlineLink, referenceLink, attributeLink} {
			for _, m := range form.FindAllStringSubmatch(line, -1) {
				if !scheme.MatchString(m[1]) && !strings.HasPrefix(m[1], "//") {
					links = append(links, Link{i + 1, m[1]})
				}
			}
		}
	}
	return links
}

// Anchors lists the headings of a document that a link can point to, by the
// rules that forges use for headings.
func Anchors(text string) map[string]bool {
	anchors := map[string]bool{}
	seen := map[string]int{}
	for _, line := range outsideFences(text) {
		for _, m := range namedAnchor.FindAllStringSubmatch(line, -1) {
			anchors[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := slugOf(m[1])
		if n := seen[slug]; n > 0 {
			anchors[slug+"-"+strconv.Itoa(n)] = true
		} else {
			anchors[slug] = true
		}
		seen[slug]++
	}
	return anchors
}

func slugOf(title string) string {
	title = linkInHeading.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

// Broken says what is wrong with a link of the document at name, or nothing.
func Broken(fsys fs.FS, name string, link Link) string {
	file, anchor, _ := strings.Cut(link.Target, "#")
	target := name
	if file != "" {
		target = path.Join(path.Dir(name), file)
	}
	if strings.HasPrefix(file, "/") || !fs.ValidPath(target) {
		return "it leaves the repository: use a path relative to the document"
	}
	if _, err := fs.Stat(fsys, target); err != nil {
		return "there is no " + target
	}
	if anchor == "" || !strings.HasSuffix(target, ".md") {
		return ""
	}
	text, err := fs.ReadFile(fsys, target)
	if err != nil {
		return err.Error()
	}
	if !Anchors(string(text))[anchor] {
		return target + " has no heading or anchor " + anchor
	}
	return ""
}

// outsideFences returns the lines of text, empty where they are in a block.
func outsideFences(text string) []string {
	lines := strings.Split(text, "\n")
	mark := ""
	for i, line := range lines {
		open := fence.FindStringSubmatch(line)
		inBlock := mark != "" || open != nil
		switch {
		case mark == "" && open != nil:
			mark = open[1]
		case mark != "" && open != nil && strings.HasPrefix(open[1], mark) && open[2]+open[3] == "":
			mark = ""
		}
		if inBlock {
			lines[i] = ""
		}
	}
	return lines
}
