package trust

import "strings"

// mutant is a row of what internal/proof/mutants lists.
type mutant struct{ number, name, breaks, tests string }

// mutantsOf reads the list, a row a line with tabs between its cells.
func mutantsOf(list string) []mutant {
	var all []mutant
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		cells := strings.Split(line, "\t")
		if len(cells) == 4 {
			all = append(all, mutant{cells[0], cells[1], cells[2], cells[3]})
		}
	}
	return all
}
