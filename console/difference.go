package console

import (
	"slices"
	"strings"
)

// Bounds of a difference.
const (
	maxCompared = 500 // lines between the first and the last that differ which are compared one by one
	maxChanged  = 400 // lines that are shown
	linesAround = 3   // that are alike, before and behind those that differ
)

// editedLine is a line of a difference.
type editedLine struct {
	Sign string // − is only before, + only after, "" both
	Text string
}

// Tone is the class of the line.
func (l editedLine) Tone() string {
	switch l.Sign {
	case "−":
		return "bad"
	case "+":
		return "good"
	}
	return ""
}

// difference returns the lines that differ between two texts, with some around them.
func difference(before, after string) []editedLine {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var list []editedLine
	alike := func(lines []string) {
		for _, line := range lines {
			list = append(list, editedLine{"", line})
		}
	}
	alike(a[max(0, head-linesAround):head])
	list = append(list, between(a[head:len(a)-tail], b[head:len(b)-tail])...)
	alike(a[len(a)-tail : min(len(a), len(a)-tail+linesAround)])
	if len(list) > maxChanged {
		list = append(list[:maxChanged], editedLine{"", "…"})
	}
	return list
}

// between compares lines by the longest list of lines that both have. Very many are taken to
// differ.
func between(a, b []string) (list []editedLine) {
	if len(a) > maxCompared || len(b) > maxCompared {
		return append(signed("−", a), signed("+", b)...)
	}
	common := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i, line := range slices.Backward(a) {
		for j, other := range slices.Backward(b) {
			if line == other {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			list = append(list, editedLine{"", a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			list = append(list, editedLine{"−", a[i]})
			i++
		default:
			list = append(list, editedLine{"+", b[j]})
			j++
		}
	}
	return append(append(list, signed("−", a[i:])...), signed("+", b[j:])...)
}

func signed(sign string, lines []string) (list []editedLine) {
	for _, line := range lines {
		list = append(list, editedLine{sign, line})
	}
	return list
}
