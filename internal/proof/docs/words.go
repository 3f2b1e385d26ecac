package docs

import "regexp"

// gloss is a word of ours that the field calls otherwise.
type gloss struct {
	ours   *regexp.Regexp
	theirs *regexp.Regexp
	say    string // how a page says it at first use
}

var glosses = []gloss{
	{regexp.MustCompile(`(?i)\bredriv(?:e|es|en|ing)\b`), regexp.MustCompile(`(?i)\b(?:requeu|replay)`), "redrive (requeue, replay)"},
	{regexp.MustCompile(`(?i)\bleas(?:e|es|ed)\b`), regexp.MustCompile(`(?i)\bvisibility timeout|\bin flight`),
		"lease (visibility timeout), leased (in flight)"},
	{regexp.MustCompile(`(?i)\bletters?\b`), regexp.MustCompile(`(?i)\bdead (?:job|message|item|record)`), "letter (dead job)"},
}

// deadLetter is the field's own word.
var deadLetter = regexp.MustCompile(`(?i)\bdead[- ]letters?\b`)

// Unglossed lists the words of ours that a document uses in a sentence without the field's word
// in the sentence that uses it first.
func Unglossed(text string) map[string]Sentence {
	missing := map[string]Sentence{}
	for _, g := range glosses {
		for _, s := range Sentences(text) {
			plain := deadLetter.ReplaceAllString(s.Text, "")
			if !g.ours.MatchString(plain) {
				continue
			}
			if !g.theirs.MatchString(s.Text) {
				missing[g.say] = s
			}
			break
		}
	}
	return missing
}
