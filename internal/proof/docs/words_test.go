package docs

import (
	"strings"
	"testing"
)

// TestWords wants our words with those of the field at their first use on each page for users.
func TestWords(t *testing.T) {
	for _, name := range documents(t) {
		if !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, decisions) || strings.HasPrefix(name, commands) {
			continue
		}
		for say, s := range Unglossed(read(t, name)) {
			t.Errorf("%s:%d: say %s at the first use: %s", name, s.Line, say, s.Text)
		}
	}
}

func TestUnglossed(t *testing.T) {
	for text, want := range map[string]string{
		"Redrive it (requeue, replay). Redrive it.":       "",
		"Redrive it. To redrive is to requeue.":           "redrive (requeue, replay)",
		"`nixie dlq redrive` does it.":                    "",
		"| redrive |":                                     "",
		"The dead letter queue has a letter (dead job).":  "",
		"The dead letter queue of Kafka.":                 "",
		"A letter waits.":                                 "letter (dead job)",
		"Its lease (visibility timeout) ends.":            "",
		"A leased message.":                               "lease (visibility timeout), leased (in flight)",
		"Release the messages. Leased ones are in flight": "",
	} {
		var got []string
		for say := range Unglossed(text) {
			got = append(got, say)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
	}
}
