package main

import (
	"strconv"
	"strings"

	"github.com/nixie-go/nixie/internal/proof/grouping"
)

// miner groups lines by templates that it learns from them, as Drain does: lines of one length
// whose first words are equal meet in a leaf of a tree, and join the template there that has most
// words at the same positions. The order of the lines counts.
type miner struct {
	leaves   map[string][]*template
	learned  int
	children map[string]int // of a node of the tree
}

type template struct {
	name  string
	words []string // wildcard where its lines differ
}

// The usual settings of miners of this kind.
const (
	wildcard    = "<*>"
	depth       = 2   // words that lead to a leaf
	maxChildren = 100 // of a node; further words share one
	similar     = 0.4 // least share of equal words
)

func newMiner() grouper {
	m := &miner{leaves: map[string][]*template{}, children: map[string]int{}}
	return func(l grouping.Line) string { return m.group(l.Text) }
}

func (m *miner) group(text string) string {
	words := strings.Fields(text)
	leaf := m.leaf(words)
	best, most := (*template)(nil), -1
	for _, t := range m.leaves[leaf] {
		if equal := t.equal(words); equal > most {
			best, most = t, equal
		}
	}
	if best == nil || float64(most) < similar*float64(len(words)) {
		m.learned++
		best = &template{strconv.Itoa(m.learned), words}
		m.leaves[leaf] = append(m.leaves[leaf], best)
	}
	best.learn(words)
	return best.name
}

// leaf names the leaf of words: their number and the first of them. A word with a digit counts as
// a wildcard.
func (m *miner) leaf(words []string) string {
	node := strconv.Itoa(len(words))
	for _, word := range words[:min(depth, len(words))] {
		if strings.ContainsAny(word, "0123456789") {
			word = wildcard
		}
		next := node + "\x00" + word
		if _, known := m.children[next]; !known && m.children[node] >= maxChildren {
			next = node + "\x00" + wildcard
		}
		if _, known := m.children[next]; !known {
			m.children[next] = 0
			m.children[node]++
		}
		node = next
	}
	return node
}

// equal returns the number of words that a line has at the same positions.
func (t *template) equal(words []string) (n int) {
	for i, word := range words {
		if t.words[i] == word {
			n++
		}
	}
	return n
}

func (t *template) learn(words []string) {
	joined := make([]string, len(words))
	for i, word := range words {
		joined[i] = word
		if t.words[i] != word {
			joined[i] = wildcard
		}
	}
	t.words = joined
}
