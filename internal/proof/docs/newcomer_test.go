package docs

import (
	"strings"
	"testing"
	"time"
)

// patience bounds the story of that page. By hand it takes longer; here no person types.
const patience = 30 * time.Second

// TestShow5_NewcomersStory plays the first page as a newcomer types it, and wants its
// commands in the order of the story: a job, why it failed, the fix, the redrive,
// and an empty office.
func TestShow5_NewcomersStory(t *testing.T) {
	text := read(t, "docs/start/shell.md")
	blocks, err := Blocks(text)
	if err != nil {
		t.Fatal(err)
	}
	var typed []Command
	for _, b := range blocks {
		commands, err := b.Commands()
		if err != nil {
			t.Fatal(err)
		}
		typed = append(typed, commands...)
	}
	story := []string{"nixie run", "nixie dlq analyze", "nixie dlq show", "touch", "nixie dlq redrive", "nixie run", "nixie dlq list"}
	next, last := 0, ""
	for _, c := range typed {
		if next < len(story) && strings.HasPrefix(c.Text, story[next]) {
			next, last = next+1, c.Output
		}
	}
	if next < len(story) {
		t.Fatalf("after %v there is no %q", story[:next], story[next])
	}
	if last != "no letters" {
		t.Errorf("the story ends with an empty office, not with %q", last)
	}

	session, err := NewSession(t.TempDir(), build(t))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	differ, err := session.Play(t.Context(), text)
	if took := time.Since(began); err != nil || len(differ) > 0 || took > patience {
		t.Errorf("took %s, %v\n%s", took, err, strings.Join(differ, "\n"))
	}
}
