package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var bold = regexp.MustCompile(`\*\*(.+?)\.?\*\*`)

// tableRows returns the cells of the rows of all tables below a heading, without the first two
// lines of each.
func tableRows(text, heading string) [][]string {
	_, part, _ := strings.Cut(text, "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var rows [][]string
	above := 0
	for line := range strings.Lines(part) {
		if !strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "|--") {
			above = 0
			continue
		}
		if above++; above > 2 {
			line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "¦")
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// TestPromisesAreShown looks for promises that name no test.
func TestPromisesAreShown(t *testing.T) {
	text := read(t, "docs/guarantees.md")
	for _, heading := range []string{"What is promised", "When things go wrong"} {
		rows := tableRows(text, heading)
		if len(rows) < 10 {
			t.Errorf("%d rows under %s", len(rows), heading)
		}
		for _, row := range rows {
			if len(NamedTests(row[len(row)-1])) == 0 {
				t.Errorf("no test shows %q", row[0])
			}
		}
	}
}

// TestTrust looks for holes in the tables of docs/trust.md.
func TestTrust(t *testing.T) {
	promised := map[string]bool{}
	for _, match := range bold.FindAllStringSubmatch(read(t, "docs/guarantees.md"), -1) {
		promised[match[1]] = true
	}
	text := read(t, "docs/trust.md")
	for heading, letter := range map[string]string{"What a system of this kind should promise": "G%d", "What broke elsewhere": "B%03d"} {
		rows := tableRows(text, heading)
		if len(rows) < 50 {
			t.Errorf("%d rows under %s", len(rows), heading)
		}
		for i, row := range rows {
			if want := fmt.Sprintf(letter, i+1); row[0] != want {
				t.Errorf("%s stands where %s should", row[0], want)
			}
			shown := strings.Join(row[2:], "")
			if letter == "B%03d" {
				shown = row[3]
			}
			if slices.Contains(row[:2], "") || shown == "" {
				t.Errorf("%s has a hole: write what happened, and the test or why there is none", row[0])
			}
			if letter == "G%d" && row[2] != "" {
				for _, name := range strings.Split(strings.Trim(row[2], "*"), "*, *") {
					if !promised[name] {
						t.Errorf("%s names the promise %q, which docs/guarantees.md does not make", row[0], name)
					}
				}
			}
		}
	}
	for _, row := range tableRows(text, "Track record") {
		if slices.Contains(row, "") || len(NamedTests(row[len(row)-1])) == 0 {
			t.Errorf("the record of %s has a hole", row[0])
		}
	}
}
