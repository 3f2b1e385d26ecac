package docs

import (
	"regexp"
	"strings"
	"unicode"
)

// mostWords bounds a sentence: what is longer is read twice.
const mostWords = 25

// Sentence is a sentence of a document.
type Sentence struct {
	Line  int // on which its paragraph begins, from 1
	Text  string
	Words int
}

var (
	listItem     = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	comment      = regexp.MustCompile(`(?s)<!--.*?-->`)
	tag          = regexp.MustCompile(`</?[a-z][^>]*>`)
	image        = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	linked       = regexp.MustCompile(`\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	spanOfCode   = regexp.MustCompile("``[^`]+(?:`[^`]+)*``|`[^`]*`")
	abbreviation = regexp.MustCompile(`\b(?:e\.g|i\.e|etc|vs)\.$`)
	sentenceEnd  = regexp.MustCompile(`[.!?]["')*_]*\s+`)
)

// Sentences lists the sentences of a document. Headings, tables and blocks of code have none,
// and a span of code is one word.
func Sentences(text string) []Sentence {
	var sentences []Sentence
	var paragraph []string
	begun := 0
	end := func() {
		for _, s := range split(strings.Join(paragraph, " ")) {
			if s != "" {
				sentences = append(sentences, Sentence{begun, s, words(s)})
			}
		}
		paragraph = nil
	}
	text = comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	for i, line := range outsideFences(text) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "> "))
		item := listItem.MatchString(line)
		if item || line == "" || line[0] == '|' || heading.MatchString(line) || referenceLink.MatchString(line) {
			end()
		}
		if line == "" || line[0] == '|' || heading.MatchString(line) || referenceLink.MatchString(line) {
			continue
		}
		if len(paragraph) == 0 {
			begun = i + 1
		}
		paragraph = append(paragraph, listItem.ReplaceAllString(line, ""))
	}
	end()
	return sentences
}

// split splits a paragraph into its sentences.
func split(paragraph string) []string {
	paragraph = spanOfCode.ReplaceAllString(paragraph, "CODE")
	paragraph = linked.ReplaceAllString(image.ReplaceAllString(paragraph, ""), "$1")
	paragraph = tag.ReplaceAllString(paragraph, "")
	var sentences []string
	from := 0
	for _, at := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
		if abbreviation.MatchString(paragraph[from : at[0]+1]) {
			continue
		}
		sentences = append(sentences, strings.TrimSpace(paragraph[from:at[1]]))
		from = at[1]
	}
	return append(sentences, strings.TrimSpace(paragraph[from:]))
}

// words counts what has a letter or a digit in it.
func words(sentence string) int {
	n := 0
	for _, word := range strings.Fields(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			n++
		}
	}
	return n
}
