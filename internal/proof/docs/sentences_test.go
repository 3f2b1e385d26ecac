package docs

import (
	"strings"
	"testing"
)

// TestSentences looks for sentences that are too long. Decision records stay as they were
// written.
func TestSentences(t *testing.T) {
	for _, name := range documents(t) {
		if strings.HasPrefix(name, decisions) {
			continue
		}
		for _, s := range Sentences(read(t, name)) {
			if s.Words > mostWords {
				t.Errorf("%s:%d: %d words, the limit is %d: %s", name, s.Line, s.Words, mostWords, s.Text)
			}
		}
	}
}

func TestSentencesOf(t *testing.T) {
	text := fenced("# No sentence. At all.\n\nOne two. Three ~code is. One~\nfour [a link](x.md) – five?\nSix\n\n" +
		"| no | table. |\n\n- an item\n  goes on: here\n- e.g. another one\n\n<!-- not\n\nthis -->\n\n~~~sh\nno. Code.\n~~~\nThe end.")
	want := []Sentence{
		{3, "One two.", 2}, {3, "Three CODE four a link – five?", 6}, {3, "Six", 1}, {9, "an item goes on: here", 5},
		{11, "e.g. another one", 3}, {20, "The end.", 2},
	}
	got := Sentences(text)
	if len(got) != len(want) {
		t.Fatalf("%d sentences, want %d: %+v", len(got), len(want), got)
	}
	for i, s := range want {
		if got[i] != s {
			t.Errorf("%+v, want %+v", got[i], s)
		}
	}
}
