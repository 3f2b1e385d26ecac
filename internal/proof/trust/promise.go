package trust

import (
	"regexp"
	"strings"

	"github.com/nixie-go/nixie/internal/proof/docs"
)

// promise is a row of docs/guarantees.md.
type promise struct {
	part  string // the heading that it stands under
	name  string // its bold words, or its first cell
	tests []string
}

// The parts of docs/guarantees.md whose tables name tests.
const (
	promisedPart = "What is promised"
	wrongPart    = "When things go wrong"
)

var bold = regexp.MustCompile(`\*\*(.+?)\.?\*\*`)

// promises reads the tables of docs/guarantees.md.
func promises(text string) []promise {
	var all []promise
	within, part := "", ""
	for _, line := range strings.Split(text, "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			within, part = title, title
		}
		if title, ok := strings.CutPrefix(line, "### "); ok {
			part = title
		}
		if within != promisedPart && within != wrongPart {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(cells[len(cells)-1], "shown by") {
			continue
		}
		p := promise{part: part, name: strings.TrimPrefix(cells[0], "| "), tests: docs.NamedTests(cells[len(cells)-1])}
		if words := bold.FindStringSubmatch(p.name); words != nil {
			p.name = words[1]
		}
		all = append(all, p)
	}
	return all
}
