package office

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// familyLeast is the least number of groups that make a family. A word with as many values is a
// name; one with less may be a part of what is said.
const familyLeast = 8

// labelled is a group as families know it.
type labelled struct {
	fingerprint string
	reason      nixie.Reason
	kind        string // type of its messages; "" is several
	label       string
}

// family is a set of groups whose labels differ in one or two words.
type family struct {
	id     string
	open   []int        // positions of these words
	groups []*labelled  // by fingerprint
	values []wordValues // of each of these words
}

// wordValues are those of a word that differs.
type wordValues struct {
	texts []string
	of    []int32 // for each group, which one it has
}

// families finds the families among groups. Each has at least [familyLeast] groups of one reason
// and type, whose labels have equally many words and differ in one or two of them. A group is in at
// most one, and the order of the groups does not matter.
//
// A pattern leaves one or two words of a label open. Those whose open words each have familyLeast
// values come first, and among them those of more groups; each takes the groups that none before it
// took. The time grows as n log n with the groups, and with the square of the words in a label,
// which are few.
func families(groups []labelled) []family {
	s := newSorting(groups)
	patterns := s.patterns()
	taken := make([]bool, len(groups))
	var found []family
	for _, least := range [...]int{familyLeast, 2} {
		for _, p := range patterns {
			free := make([]int, 0, len(p.groups))
			for _, g := range p.groups {
				if !taken[g] {
					free = append(free, g)
				}
			}
			if len(free) < familyLeast {
				continue
			}
			open := slices.DeleteFunc(slices.Clone(p.open), func(at int) bool { return !s.has(2, at, free) })
			if len(open) == 0 || slices.ContainsFunc(open, func(at int) bool { return !s.has(least, at, free) }) {
				continue
			}
			for _, g := range free {
				taken[g] = true
			}
			found = append(found, s.family(free, open))
		}
	}
	slices.SortFunc(found, func(a, b family) int { return cmp.Compare(a.id, b.id) })
	return found
}

// family makes a family of groups.
func (s *sorting) family(of, open []int) family {
	slices.SortFunc(of, func(a, b int) int { return cmp.Compare(s.groups[a].fingerprint, s.groups[b].fingerprint) })
	f := family{id: s.id(of[0], open), open: open, groups: make([]*labelled, len(of))}
	for i, g := range of {
		f.groups[i] = &s.groups[g]
	}
	for _, at := range open {
		v, known := wordValues{of: make([]int32, len(of))}, map[uint64]int32{}
		for i, g := range of {
			n, is := known[s.rows[g].words[at]]
			if !is {
				n = int32(len(v.texts))
				known[s.rows[g].words[at]] = n
				v.texts = append(v.texts, s.groups[g].word(at))
			}
			v.of[i] = n
		}
		f.values = append(f.values, v)
	}
	return f
}

// pattern is a label with open words, and the groups that it fits.
type pattern struct {
	open   []int
	groups []int
	id     string
}

// sorting compares labels by hashes of their words.
type sorting struct {
	groups []labelled
	rows   []hashes
	count  counts // of groups with a hash
}

// hashes are those of a label. Words of labels that differ in reason, type or number of words have
// other hashes, and so have equal words in other positions.
type hashes struct {
	kind, sum uint64 // of reason, type and number of words, and all of them together
	words     []uint64
	differs   []int // positions of words that not all labels of the kind have
	rare      []int // 1 for those of them that less than familyLeast have, else 0
	rares     int   // their sum
}

func newSorting(groups []labelled) *sorting {
	s := &sorting{groups: groups, rows: make([]hashes, len(groups))}
	seed := maphash.MakeSeed()
	words := make([]uint64, 0, 12*len(groups)) // of all labels
	reason, kind, begins := nixie.Reason(""), "", mixed(maphash.String(seed, ""), maphash.String(seed, ""))
	for i := range groups {
		g, first := &groups[i], len(words)
		for word := range eachWord(g.label) {
			words = append(words, maphash.String(seed, word))
		}
		if g.reason != reason || g.kind != kind {
			reason, kind = g.reason, g.kind
			begins = mixed(maphash.String(seed, string(reason)), maphash.String(seed, kind))
		}
		r := &s.rows[i]
		r.words = words[first:len(words):len(words)]
		r.kind = mixed(begins, uint64(len(r.words)))
		r.sum = r.kind
		s.count.add(r.kind)
		for at, word := range r.words {
			r.words[at] = mixed(r.kind+uint64(at), word)
			r.sum += r.words[at]
			s.count.add(r.words[at])
		}
	}
	s.compare()
	return s
}

// counts counts hashes, which are random enough to be looked for where they say.
type counts struct {
	hashes []uint64 // as many as a power of two; 0 is none
	n      []int32
	used   int
}

// at returns where a hash is, or should be.
func (c *counts) at(h uint64) int {
	last := len(c.hashes) - 1
	at := int(h) & last
	for c.hashes[at] != h && c.hashes[at] != 0 {
		at = (at + 1) & last
	}
	return at
}

// add counts a hash once more.
func (c *counts) add(h uint64) {
	if h |= 1; 2*c.used >= len(c.hashes) {
		old := *c
		size := max(1<<10, 4*len(old.hashes))
		c.hashes, c.n = make([]uint64, size), make([]int32, size)
		for i, h := range old.hashes {
			if h != 0 {
				at := c.at(h)
				c.hashes[at], c.n[at] = h, old.n[i]
			}
		}
	}
	at := c.at(h)
	if c.n[at]++; c.n[at] == 1 {
		c.hashes[at] = h
		c.used++
	}
}

// of returns how often a hash was counted.
func (c *counts) of(h uint64) int { return int(c.n[c.at(h|1)]) }

// mixed makes one hash of two.
func mixed(a, b uint64) uint64 {
	h := (a ^ b*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return (h ^ h>>29) * 0x94d049bb133111eb
}

// opened returns the change of the hash of a label when a word is open.
func (r *hashes) opened(at int) uint64 { return mixed(^r.kind, uint64(at)) - r.words[at] }

// compare notes which words may be open.
func (s *sorting) compare() {
	var differs, rare []int // of all labels
	for i := range s.rows {
		r := &s.rows[i]
		all, first := s.count.of(r.kind), len(differs)
		if all < familyLeast {
			continue
		}
		for at, h := range r.words {
			n := s.count.of(h)
			if n == all {
				continue
			}
			is := 0
			if n < familyLeast {
				is = 1
			}
			differs, rare = append(differs, at), append(rare, is)
			r.rares += is
		}
		if r.rares > 2 { // they are in no family
			differs, rare = differs[:first], rare[:first]
		}
		r.differs, r.rare = differs[first:len(differs):len(differs)], rare[first:len(rare):len(rare)]
	}
}

// each calls do with the words a and b that may be open in the label of a group, and the hash of
// the rest; a is b where one is open. A word that all groups of its kind have is never open; one
// that less than familyLeast have always is.
func (s *sorting) each(g int, do func(hash uint64, a, b int)) {
	r := &s.rows[g]
	for i, a := range r.differs {
		one, rare := r.sum+r.opened(a), r.rares-r.rare[i]
		if rare == 0 {
			do(one, a, a)
		}
		for j := i + 1; j < len(r.differs) && rare < 2; j++ {
			if rare == r.rare[j] {
				do(one+r.opened(r.differs[j]), a, r.differs[j])
			}
		}
	}
}

// patterns lists those that fit at least familyLeast groups, most groups first. One with two open
// words is left out where one of them is the same in all its groups.
func (s *sorting) patterns() []*pattern {
	fits := s.fits()
	by := map[uint64]*pattern{}
	var list []*pattern
	for g := range s.groups {
		r := &s.rows[g]
		s.each(g, func(hash uint64, a, b int) {
			n := fits[hash]
			if n < familyLeast || a != b && (n == fits[r.sum+r.opened(a)] || n == fits[r.sum+r.opened(b)]) {
				return
			}
			p := by[hash]
			if p == nil {
				p = &pattern{open: slices.Compact([]int{a, b})}
				p.id = s.id(g, p.open)
				by[hash] = p
				list = append(list, p)
			}
			p.groups = append(p.groups, g)
		})
	}
	slices.SortFunc(list, func(a, b *pattern) int { return cmp.Or(len(b.groups)-len(a.groups), cmp.Compare(a.id, b.id)) })
	return list
}

// fits counts the groups that patterns fit, if they are familyLeast or more. Most patterns fit few
// groups: these are found first by counts that several patterns share, which need less room.
func (s *sorting) fits() map[uint64]int {
	patterns := 1
	for g := range s.groups {
		s.each(g, func(uint64, int, int) { patterns++ })
	}
	shared := make([]uint8, 1<<bits.Len(uint(2*patterns)))
	mask := uint64(len(shared) - 1)
	for g := range s.groups {
		s.each(g, func(hash uint64, _, _ int) {
			if n := &shared[hash&mask]; *n < familyLeast {
				*n++
			}
		})
	}
	fits := map[uint64]int{}
	for g := range s.groups {
		s.each(g, func(hash uint64, _, _ int) {
			if shared[hash&mask] == familyLeast {
				fits[hash]++
			}
		})
	}
	return fits
}

// has reports whether a word has at least some values in the labels of groups.
func (s *sorting) has(least, at int, groups []int) bool {
	seen := make([]uint64, 0, familyLeast)
	for _, g := range groups {
		if h := s.rows[g].words[at]; !slices.Contains(seen, h) {
			if seen = append(seen, h); len(seen) == least {
				return true
			}
		}
	}
	return false
}

// id names the family of a group by what its labels have in common.
func (s *sorting) id(g int, open []int) string {
	sum := sha256.Sum256([]byte(string(s.groups[g].reason) + "\x00" + s.groups[g].kind + "\x00" + s.groups[g].without(open)))
	return hex.EncodeToString(sum[:6])
}

// without returns the label with * for the words at some positions.
func (g *labelled) without(open []int) string {
	words := strings.Fields(g.label)
	for _, at := range open {
		words[at] = openWord
	}
	return strings.Join(words, " ")
}

// word returns the word of the label at a position.
func (g *labelled) word(at int) string {
	for word := range eachWord(g.label) {
		if at == 0 {
			return word
		}
		at--
	}
	return ""
}

// eachWord is [strings.FieldsSeq], at less cost for texts of ASCII.
func eachWord(text string) iter.Seq[string] {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return strings.FieldsSeq(text)
		}
	}
	return func(yield func(string) bool) {
		first := 0
		for i := range len(text) + 1 {
			if i < len(text) && text[i] != ' ' && (text[i] < '\t' || text[i] > '\r') {
				continue
			}
			if i > first && !yield(text[first:i]) {
				return
			}
			first = i + 1
		}
	}
}

// openWord stands for the words that differ in the labels of a family.
const openWord = "*"
