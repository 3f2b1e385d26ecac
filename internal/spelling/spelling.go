// Package spelling tells how near a word is to a name, so that an error may say which name was
// meant.
package spelling

import "slices"

// mostLetters bounds a word: a longer one is like no name.
const mostLetters = 100

// Slips counts the letters that are missing, too many, wrong, or in the wrong order.
func Slips(word, name string) int {
	word = word[:min(len(word), mostLetters)]
	before, last := make([]int, len(name)+1), make([]int, len(name)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(word) {
		row := make([]int, len(name)+1)
		row[0] = i + 1
		for j := range len(name) {
			wrong := 1
			if word[i] == name[j] {
				wrong = 0
			}
			row[j+1] = min(last[j]+wrong, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && word[i] == name[j-1] && word[i-1] == name[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(name)]
}

// Nearest returns the name that a word has the fewest slips from. There has to be a name.
func Nearest(word string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return Slips(word, a) - Slips(word, b) })
}
