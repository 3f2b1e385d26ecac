package arch

import "regexp"

// textRule forbids a pattern in every text file.
type textRule struct {
	name    string
	pattern *regexp.Regexp
	why     string
}

// selfExempt names the file that has to spell what is forbidden.
const selfExempt = "internal/proof/arch/words.go"

var textRules = []textRule{
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

// unfinished marks work that is not done; it has a place in the tracker.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// stub is the text of a panic that stands for code which is not there.
var stub = regexp.MustCompile(`(?i)^\W*(unimpl|not (yet )?impl|todo)`)
