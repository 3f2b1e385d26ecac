package arch

import (
	"regexp"
	"strings"
)

// textRule forbids a pattern in text files.
type textRule struct {
	name    string
	ends    string // how the names of the files end; empty: every file
	pattern *regexp.Regexp
	why     string
	present bool // it does not hold for what tells the past
}

// unread files spell what is forbidden, or were not written here.
var unread = []string{"internal/proof/arch/words.go", "go.sum", "LICENSE", "NOTICE", "broker/testdata/golden"}

// past folders and files tell what was, in the words of then.
var past = []string{"docs/decisions", "CHANGELOG.md"}

var textRules = []textRule{
	{
		name:    "retired-word",
		pattern: regexp.MustCompile(`(?i)\b(` + strings.Join(strings.Fields(retired), "|") + `|so many)\b`),
		why:     "a retired word; docs/concepts.md has the word that means it",
		present: true,
	},
	{
		name:    "retired-word",
		pattern: regexp.MustCompile(`\b(QueueLook|LookAtNewest|LookAtAll|ParseSpan|Receipted|LentBy)\b`),
		why:     "a retired name",
		present: true,
	},
	{
		name:    "riddle",
		ends:    ".go",
		pattern: regexp.MustCompile(`(?m)//.*\b(is|are) (what|how|where|who|whom|when|whether|why)\b`),
		why:     "say what it does: X counts …, X returns …, X tells the committer to …",
		present: true,
	},
	{
		name:    "unfinished",
		pattern: regexp.MustCompile(`(^|[^.\w])(TODO|FIXME)\b`),
		why:     "a mark of unfinished work: finish it, or take it to the tracker",
	},
	{
		name:    "stub",
		ends:    ".go",
		pattern: regexp.MustCompile(`(?i)panic\("\W*(unimpl|not (yet )?impl|todo)`),
		why:     "what is not finished is not there: leave the function out",
	},
	{
		name:    "skip",
		ends:    ".go",
		pattern: regexp.MustCompile(`\b(t|b|f|tb)\.(SkipNow\(|Skip\(\))`),
		why:     "a skipped test says why: t.Skip(reason)",
	},
	{
		name:    "machine-path",
		pattern: regexp.MustCompile(`(^|[^\w./{}-])(/work/[a-z]|/root\b|/home/[a-z]|/Users/[A-Za-z]|/tmp/[\w.-]|/var/folders/|[A-Z]:\\Users\\)`),
		why:     "a folder of one machine is wrong on every other: use a relative path, t.TempDir or os.TempDir",
	},
	{
		name: "registry-host",
		pattern: regexp.MustCompile(`\b(proxy\.golang\.org|sum\.golang\.org|goproxy\.\w+|registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|` +
			`files\.pythonhosted\.org|repo1?\.maven\.(apache\.)?org|(deb|security|ftp)\.debian\.org|archive\.ubuntu\.com|` +
			`(registry-1|index|hub|auth)\.docker\.(io|com)|docker\.io|ghcr\.io|gcr\.io|quay\.io|crates\.io|rubygems\.org|packages\.confluent\.io)\b`),
		why: "where packages come from is set on the machine, by its owner, not here",
	},
}

// retired words have another word now, or none.
const retired = `turns? places? lanes? life lives beside apart nobody whoever whatever somebody everybody anybody
	mend(s|ed)? slabs? trays? stretch(es)? sheets? handouts? stir(s|red)? arrang(e|es|ed|ements?) aloft tired hurry veils? beds?
	dice hearts? storms? calm`
